/* Unpacks what timeline_data.py packed: for each instant its entry, time, pending and reserved bytes, and all changes of
   the kinds of live bytes. */
const inflated = async (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
};
const unpacked = (spec, bytes) => {
  const count = spec.count;
  let place = 0;
  const next = () => {
    let value = 0, scale = 1, byte;
    do { byte = bytes[place++]; value += (byte & 127) * scale; scale *= 128; } while (byte & 128);
    return value;
  };
  const signed = () => { const value = next(); return value % 2 ? -(value + 1) / 2 : value / 2; };
  /* A column of running sums. */
  const sums = (read, start = 0) => {
    const column = new Float64Array(count);
    for (let row = 0, sum = start; row < count; row++) column[row] = sum += read();
    return column;
  };
  const entry = sums(next);
  const time = spec.timed ? sums(() => next() * spec.tick / 1e6, spec.start / 1e6) : new Float64Array(count);
  const ends = sums(next), changes = ends[count - 1] || 0;
  const kind = Int32Array.from({length: changes}, next);
  const change = Float64Array.from({length: changes}, () => signed() * spec.unit);
  const pending = sums(() => signed() * spec.unit), reserved = sums(() => signed() * spec.unit);
  const allocated = new Float64Array(count);
  for (let row = 0, at = 0, sum = 0; row < count; row++) {
    for (; at < ends[row]; at++) sum += change[at];
    allocated[row] = sum;
  }
  return {entry, time, pending, reserved, allocated, ends, kind, change};
};
/* Bytes of each kind at an instant. */
const kindsAt = (spec, columns, row) => {
  const live = new Float64Array(spec.kinds.length);
  for (let at = 0; at < columns.ends[row]; at++) live[columns.kind[at]] += columns.change[at];
  return live;
};
/* Where a kind of live bytes is told, by the view; and the words of each view. */
const VIEWS = {category: [0, "categories"], site: [1, "sites"], phase: [2, "phases"], part: [3, "parts"]};
/* The bands of a view, from below: words, class of their colour with its opacity, and bytes at each instant. */
const bandsOf = (spec, columns, mode) => {
  const [place, words] = VIEWS[mode], made = new Map();
  const bandOf = spec.kinds.map((kind) => {
    const key = kind[place];
    if (!made.has(key)) {
      const [colour, opacity, label] = spec[words][key];
      made.set(key, {key, colour, opacity, label, bytes: new Float64Array(spec.count), mode});
    }
    return made.get(key);
  });
  const bands = [...made.values()];
  for (let row = 0, at = 0; row < spec.count; row++) {
    if (row) for (const band of bands) band.bytes[row] = band.bytes[row - 1];
    for (; at < columns.ends[row]; at++) bandOf[columns.kind[at]].bytes[row] += columns.change[at];
  }
  const others = spec.sites.length - 1;
  const rank = (band) => (mode === "part" ? spec.order.indexOf(band.key) : mode === "site" && band.key === others ? -1 : band.key);
  return bands.sort((a, b) => rank(a) - rank(b));
};
