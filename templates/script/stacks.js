/* The flame graphs at what is chosen in the timeline, from the same exact numbers as the tables and bars above them.
   Every kind of live bytes says where in each graph it is: twice the number of the innermost box, and 1 more where a
   frame beneath that is not drawn. The number after the last box stands for none: of a stack, or (even) of no stack. */
const GRAPHS = 4; // where the kinds tell of the first graph
const graphs = [];
/* Bytes of each box and, first, of all boxes: what there is or what rose, what fell, what rose by category; and what no
   box shows. `values` has the bytes of each kind. */
const weighed = ({kinds, categories}, values, parents, column) => {
  const most = parents.length, wide = categories.length, own = new Float64Array((most + 1) * wide);
  const rise = new Float64Array(most + 1), fall = new Float64Array(most + 1), parts = new Float64Array((most + 1) * wide);
  const at = [];
  let left = 0, hidden = 0;
  kinds.forEach((kind, number) => {
    const key = kind[column];
    if (key === 2 * most) { left += values[number]; return; }
    own[((key >> 1 === most ? -1 : key >> 1) + 1) * wide + kind[0]] += values[number];
    if (key % 2) hidden += values[number];
  });
  own.forEach((value, place) => {
    if (!value) return;
    const category = place % wide, box = (place - category) / wide - 1;
    if (value < 0) at.push([value, box]);
    for (let one = box; ; one = parents[one]) {
      (value > 0 ? rise : fall)[one + 1] += value;
      if (value > 0) parts[(one + 1) * wide + category] += value;
      if (one < 0) break;
    }
  });
  const colour = (box) => {
    const some = parts.subarray((box + 1) * wide, (box + 2) * wide);
    return categories[some.indexOf(Math.max(...some))][0];
  };
  return {rise, fall, left, hidden, colour, falls: at.sort(([a], [b]) => a - b)};
};
/* Where each box begins, in bytes: beneath its caller, the widest first. */
const starting = (rise, parents) => {
  const next = new Float64Array(parents.length + 1), start = new Float64Array(parents.length);
  const order = parents.map((_, box) => box).sort((a, b) => rise[b + 1] - rise[a + 1] || a - b);
  for (const box of order) {
    start[box] = next[box + 1] = next[parents[box] + 1];
    next[parents[box] + 1] += rise[box + 1];
  }
  return start;
};
/* The words above a graph: what it shows, and what it does not. */
const covering = (found, {rows, where, said}, remark, named) => {
  const all = found.rise[0], parts = [];
  if (rows.length > 1) parts.push(all ? `Width is what rose ${where}: ${size(all)}` : `Nothing rose ${where}`);
  else parts.push(`${where[0].toUpperCase()}${where.slice(1)}: ${size(all)}`);
  const falls = found.falls.slice(0, 4).map(([value, box]) => (box < 0 ? size(-value) : `${size(-value)} in ${named(box)}`));
  if (found.fall[0]) parts.push(`${size(-found.fall[0])} fell: ${falls.join("; ")}${found.falls.length > 4 ? "; …" : ""}`);
  if (found.left) parts.push(`${remark}: ${said(found.left)}`);
  if (found.hidden) parts.push(`In frames that are not drawn: ${said(found.hidden)}`);
  return `${parts.join(". ")}.`;
};
/* Lets a graph follow: `lay` places its boxes anew, or as they were. */
const following = (number, boxes, lay, covers) => {
  const {parents} = data.flames.graphs[number];
  const named = (box) => labelOf(boxes[box]);
  graphs.push({
    restore: () => lay(null),
    follow: ({spec, columns}, selection) => {
      const [first, end] = selection.rows.map((row) => kindsAt(spec, columns, row));
      const values = end ? end.map((value, kind) => value - first[kind]) : first;
      const found = weighed(spec, values, parents, GRAPHS + number), start = starting(found.rise, parents);
      const words = (box) => {
        const rise = found.rise[box + 1], fall = found.fall[box + 1];
        return end ? `rose by ${size(rise)}${fall ? `, fell by ${size(-fall)}` : ""}` : `${size(rise)} (${shareOf(rise, found.rise[0])})`;
      };
      const per = 100 / (found.rise[0] || 1);
      lay(boxes.map((_, box) => ({x: start[box] * per, w: found.rise[box + 1] * per, bytes: found.rise[box + 1], colour: found.colour(box), words: words(box)})));
      instead(covers, document.createTextNode(covering(found, selection, covers.dataset.left, named)));
    },
  });
};
