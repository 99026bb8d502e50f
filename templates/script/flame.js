const flame = (graph, readout) => {
  const boxes = [...graph.querySelectorAll(".box")];
  const from = (box) => Number(box.dataset.x), width = (box) => Number(box.dataset.w);
  const row = (box) => Number(box.getAttribute("y")), visible = (box) => !box.classList.contains("out");
  const place = (left, whole) => {
    for (const box of boxes) {
      const start = Math.max(from(box), left), end = Math.min(from(box) + width(box), left + whole);
      const share = (end - start) / whole, inside = share > 1e-6;
      box.classList.toggle("out", !inside);
      if (inside) {
        box.setAttribute("x", `${+(((start - left) / whole) * 100).toFixed(3)}%`);
        box.setAttribute("width", `${+(share * 100).toFixed(3)}%`);
        box.classList.toggle("thin", share < data.thin);
      }
    }
  };
  let zoomed = null, here = null;
  const toggle = (box) => {
    zoomed = zoomed === box ? null : box;
    if (zoomed) place(from(zoomed), width(zoomed)); else place(0, 100);
  };
  const read = (box) => { readout.textContent = box.querySelector("title").textContent; };
  const stand = (box) => {
    if (!box) return;
    if (here) here.classList.remove("here");
    here = box;
    here.classList.add("here");
    graph.append(here); // drawn last, so that its outline is whole
    read(here);
  };
  /* The neighbour of `box` that is `rows` below it, or beside it. */
  const beside = (box, rows, to) => {
    const there = boxes.filter((one) => one !== box && visible(one) && row(one) === row(box) + rows * data.row);
    const shared = (one) => Math.min(from(one) + width(one), from(box) + width(box)) - Math.max(from(one), from(box));
    if (rows) return there.filter((one) => shared(one) > 0).sort((a, b) => shared(b) - shared(a))[0];
    const side = there.filter((one) => (to < 0 ? from(one) < from(box) : from(one) > from(box)));
    return side.sort((a, b) => Math.abs(from(a) - from(box)) - Math.abs(from(b) - from(box)))[0];
  };
  graph.addEventListener("click", (event) => {
    const box = event.target.closest(".box");
    if (box) toggle(box);
  });
  graph.addEventListener("pointerover", (event) => {
    const box = event.target.closest(".box");
    if (box) read(box);
  });
  graph.parentNode.addEventListener("keydown", (event) => {
    const move = {ArrowDown: [1], ArrowUp: [-1], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (move) { event.preventDefault(); stand(here ? beside(here, ...move) : boxes[0]); }
    if (event.key === "Enter" && here) toggle(here);
    if (event.key === "Escape" && zoomed) toggle(zoomed);
  });
  return boxes;
};
const flames = () => {
  const figure = document.getElementById("flame-figure");
  if (!figure) return;
  const readout = figure.querySelector(".readout"), status = figure.querySelector("[role=status]");
  const boxes = [...figure.querySelectorAll(".flame")].flatMap((graph) => flame(graph, readout));
  figure.querySelector("input[type=search]").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    let found = 0;
    for (const box of boxes) {
      const fits = wanted !== "" && box.querySelector("title").textContent.toLowerCase().includes(wanted);
      box.classList.toggle("found", fits);
      found += fits && box.parentNode.checkVisibility();
    }
    status.textContent = wanted === "" ? "" : found ? `${found} ${found === 1 ? "box" : "boxes"}` : "No frame matches.";
  });
};
