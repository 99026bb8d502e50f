/* What is chosen in the timeline, shown by the section Who: its tables and bars as they were at that instant, or by how
   much they changed. What is known only of the instant that the report is about becomes a dash, or says so. */
const who = () => document.getElementById("who");
const shareOf = (part, whole) => {
  const value = whole ? (100 * part) / whole : 0;
  return !part ? "0 %" : value > 0 && value < 0.1 ? "< 0.1 %" : `${value < 99.95 ? value.toFixed(1) : value.toFixed(0)} %`;
};
/* Puts `content` in the place of what stands in `element`, until it is restored. */
const instead = (element, content, value) => {
  element.kept ||= {nodes: [...element.childNodes], value: element.dataset.v};
  element.replaceChildren(content);
  if (value !== undefined) element.dataset.v = value;
};
const arrange = (body, rank) => body.append(...[...body.rows].sort((a, b) => rank(b) - rank(a)));
const restore = () => {
  for (const element of who().querySelectorAll("[data-told], .follows")) {
    if (!element.kept) continue;
    element.replaceChildren(...element.kept.nodes);
    if (element.kept.value !== undefined) element.dataset.v = element.kept.value;
    element.kept = undefined;
  }
  for (const graph of graphs) graph.restore();
  who().classList.remove("elsewhere");
  for (const row of who().querySelectorAll("tr.gone")) row.classList.remove("gone");
  for (const body of who().querySelectorAll("tbody[data-mode]")) arrange(body, (row) => -Number(row.dataset.order));
};
const returning = () => {
  const button = make("button", `back to ${who().dataset.zero}`, {type: "button"});
  button.addEventListener("click", () => {
    restore();
    for (const panel of document.querySelectorAll(".moment")) panel.hidden = true;
  });
  return button;
};
/* The bar of a view with its legend. */
const barred = (bands, {read, said, total}) => {
  const rows = bands.map((band) => [band, read(band.bytes)]).filter(([, value]) => value !== 0);
  const whole = document.createDocumentFragment(), list = make("ul", undefined, {class: "legend"});
  const bar = draw("svg", {class: "bar", width: "100%", height: 34, "aria-hidden": "true"});
  let start = 0;
  for (const [band, value] of rows) {
    const look = {class: band.colour, "fill-opacity": band.opacity};
    if (total) {
      bar.append(draw("rect", {...look, x: `${start.toFixed(3)}%`, width: `${((100 * value) / total).toFixed(3)}%`, height: 34}));
      start += (100 * value) / total;
    }
    const item = make("li"), key = draw("svg", {class: "key", width: 12, height: 12, "aria-hidden": "true"});
    key.append(draw("rect", {...look, width: 12, height: 12}));
    item.append(key, `${band.label} `, make("strong", said(value)));
    list.append(item);
  }
  if (total) whole.append(bar);
  whole.append(rows.length ? list : make("p", "nothing"));
  return whole;
};
const follow = (timeline, selection) => {
  const {words, read, said, total} = selection, line = document.createDocumentFragment();
  restore();
  who().classList.add("elsewhere");
  line.append(`${words} `, returning());
  instead(document.getElementById("who-when"), line);
  for (const graph of graphs) graph.follow(timeline, selection);
  for (const bar of who().querySelectorAll("[data-bar]")) instead(bar, barred(timeline.bands(bar.dataset.bar), selection));
  for (const body of who().querySelectorAll("tbody[data-mode]")) {
    const found = new Map(timeline.bands(body.dataset.mode).map((band) => [String(band.key), read(band.bytes)]));
    for (const row of body.rows) {
      const value = found.get(row.dataset.key), known = row.dataset.key !== undefined;
      for (const cell of row.querySelectorAll("[data-told]")) {
        const text = !known || cell.dataset.told === "other" ? "–"
          : cell.dataset.told === "share" ? (total === null ? "–" : shareOf(value || 0, total)) : said(value || 0);
        instead(cell, text, known ? value || 0 : -1);
      }
      row.classList.toggle("gone", known && !value);
    }
    arrange(body, (row) => Math.abs(Number(row.querySelector("[data-told=bytes]").dataset.v)));
  }
};
