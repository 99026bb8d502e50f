/* A box that is drawn only at other instants than the page's own. */
const laterBox = ([depth, frame]) => {
  const box = draw("svg", {class: "box out", height: 18, y: depth * data.row});
  box.append(draw("title", {}, data.flames.frames[frame]), draw("rect", {width: "100%", height: 18, class: ""}));
  return box;
};
/* What a box stands for: its function, and the end of its path. In `room` pixels, as much of it as fits. */
const LETTER = 6.4;
const labelOf = (box, room = Infinity) => {
  const [name, path] = box.querySelector("title").textContent.split(" · "), most = Math.floor((room - 6) / LETTER);
  const place = path.split(/[\\/]/).pop(), whole = `${name} (${place})`;
  const fitting = [whole, `${name} ${place.slice(place.lastIndexOf(":"))}`, name].find((text) => text.length <= most);
  return fitting ?? `${name.slice(0, Math.max(most - 1, 1))}…`;
};
const flame = (graph, readout, number) => {
  const later = data.flames ? data.flames.graphs[number].later.map(laterBox) : [];
  graph.append(...later);
  const boxes = [...graph.querySelectorAll(".box")], tall = graph.getAttribute("height");
  const firsts = boxes.map((box) => {
    const title = box.querySelector("title").textContent, colour = box.querySelector("rect").getAttribute("class");
    const full = later.includes(box) ? title : title.slice(0, title.lastIndexOf(" · "));
    return {x: parseFloat(box.getAttribute("x")) || 0, w: parseFloat(box.getAttribute("width")) || 0, colour, title, full};
  });
  boxes.forEach((box, at) => Object.assign(box.dataset, {x: firsts[at].x, w: firsts[at].w}));
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
        const thin = share < data.thin, text = box.querySelector("text");
        box.classList.toggle("thin", thin);
        if (thin && text && text.dataset.late) text.remove();
        if (!text && !thin) box.append(draw("text", {x: 4, y: 13, "data-late": 1}));
        if (!thin) box.querySelector("text").textContent = labelOf(box, share * (graph.clientWidth || data.wide));
      }
    }
  };
  let zoomed = null, here = null;
  const toggle = (box) => {
    zoomed = zoomed === box ? null : box;
    if (zoomed) place(from(zoomed), width(zoomed)); else place(0, 100);
  };
  /* Lays the boxes out anew; without looks, as they were. */
  const lay = (looks) => {
    boxes.forEach((box, at) => {
      const first = firsts[at], look = looks ? looks[at] : first;
      Object.assign(box.dataset, {x: look.x, w: look.w});
      if (looks) box.dataset.v = look.bytes; else delete box.dataset.v;
      box.querySelector("title").textContent = looks ? `${first.full} · ${look.words}` : first.title;
      box.querySelector("rect").setAttribute("class", look.colour);
    });
    if (zoomed && !(width(zoomed) > 0)) zoomed = null;
    if (zoomed) place(from(zoomed), width(zoomed)); else place(0, 100);
    graph.setAttribute("height", looks ? Math.max(data.row, ...boxes.filter(visible).map((box) => row(box) + data.row)) : tall);
    readout.textContent = "";
  };
  const covers = graph.closest("div.graph").querySelector(".covers");
  if (data.flames) following(number, boxes, lay, covers);
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
    if (move) { event.preventDefault(); stand(here && visible(here) ? beside(here, ...move) : boxes.find(visible)); }
    if (event.key === "Enter" && here) toggle(here);
    if (event.key === "Escape" && zoomed) toggle(zoomed);
  });
  return boxes;
};
const flames = () => {
  const figure = document.getElementById("flame-figure");
  if (!figure) return;
  const readout = figure.querySelector(".readout"), status = figure.querySelector("[role=status]");
  const boxes = [...figure.querySelectorAll(".flame")].flatMap((graph, number) => flame(graph, readout, number));
  figure.querySelector("input[type=search]").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    let found = 0;
    for (const box of boxes) {
      const fits = wanted !== "" && box.querySelector("title").textContent.toLowerCase().includes(wanted);
      box.classList.toggle("found", fits);
      found += fits && Number(box.dataset.w) > 0 && box.parentNode.checkVisibility();
    }
    status.textContent = wanted === "" ? "" : found ? `${found} ${found === 1 ? "box" : "boxes"}` : "No frame matches.";
  });
};
