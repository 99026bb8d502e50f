const MOST_DRAWN = 4000; // rows that are drawn one by one
const ticks = (low, high, most) => {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= rough) * power;
  const found = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step) found.push(tick);
  return found;
};
/* The last instant that is not after `wanted`. */
const before = (values, wanted) => {
  let low = 0, high = values.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (values[middle] <= wanted) low = middle; else high = middle - 1;
  }
  return low;
};

class Timeline {
  constructor(holder, spec, columns) {
    Object.assign(this, {holder, spec, mode: "part", axis: "entry", cached: {}, columns});
    [this.width, , this.left, this.right, this.top, this.bottom] = spec.box;
    this.svg = holder.querySelector("svg.fig");
    this.readout = holder.querySelector(".readout");
    this.panel = holder.querySelector(".moment");
    this.legend = holder.querySelector(".bands");
    this.static = [...this.svg.children].filter((one) => one.tagName === "g");
    this.layer = draw("g", {class: "live"});
    this.cursor = draw("line", {class: "cursor off", y1: this.top, y2: this.bottom});
    this.brush = draw("rect", {class: "brush", y: this.top, height: this.bottom - this.top, width: 0});
    this.svg.append(this.layer, this.brush, this.cursor);
    this.last = spec.count - 1;
    this.at = this.last;
    this.along("entry");
    this.listen();
  }
  along(axis) {
    this.axis = axis;
    this.x = this.columns[axis];
    [this.from, this.to] = this.whole = [this.x[0], this.x[this.last]];
  }
  bands(mode = this.mode) { return (this.cached[mode] ||= bandsOf(this.spec, this.columns, mode)); }
  place(x) { return this.left + ((x - this.from) / (this.to - this.from || 1)) * (this.right - this.left); }
  when(row) {
    if (!this.spec.timed) return "";
    const time = this.columns.time[row];
    return Math.abs(time) * 1e6 < Math.max(1, this.spec.tick) / 2 || this.columns.entry[row] === this.spec.at ? `at ${this.spec.zero}` : `${duration(time)} ${time < 0 ? "before" : "after"} ${this.spec.zero}`;
  }
  where(row) { return [this.when(row), `entry ${count(this.columns.entry[row] + this.spec.first)}`].filter(Boolean).join(" · "); }
  /* Said where a trace has more instants than the page holds. */
  nearest() { return this.spec.whole ? "" : ` (the nearest before it of ${count(this.spec.count)} instants that this page holds, of ${count(this.spec.entries)} entries)`; }

  /* `height` in bytes, where the pointer says one: the band there is named first. */
  show(row, height) {
    const {allocated, pending, reserved} = this.columns;
    this.at = row = Math.max(0, Math.min(this.last, row));
    const x = this.place(this.x[row]);
    for (const end of ["x1", "x2"]) this.cursor.setAttribute(end, x);
    this.cursor.classList.toggle("off", x < this.left - 1 || x > this.right + 1);
    const active = pending[row] ? ` · active ${size(allocated[row] + pending[row])}` : "";
    const told = `allocated ${size(allocated[row])}${active} · reserved ${size(reserved[row])} · ${this.where(row)}${this.nearest()}`;
    const band = height === undefined ? undefined : this.bandAt(row, height);
    this.readout.replaceChildren();
    if (band) this.readout.append(make("strong", `${band[0]} ${size(band[1])}`), " · ");
    this.readout.append(told);
  }
  bandAt(row, height) {
    let floor = 0;
    for (const band of this.bands()) {
      floor += band.bytes[row];
      if (height < floor) return [band.label, band.bytes[row]];
    }
    const {allocated, pending, reserved} = this.columns, free = reserved[row] - allocated[row] - pending[row];
    return height < reserved[row] && free > 0 ? ["free inside segments", free] : undefined;
  }

  render() {
    const isStatic = this.mode === "part" && this.axis === "entry" && this.from === this.whole[0] && this.to === this.whole[1];
    for (const one of this.static) one.classList.toggle("off", !isStatic);
    this.layer.replaceChildren();
    this.paintLegend();
    const first = before(this.x, this.from), end = before(this.x, this.to);
    this.highest = isStatic ? undefined : this.paint(first, end);
    this.show(this.at);
  }
  /* The rows from `first` to `end` that show every extreme at the width of the figure. */
  worth(first, end) {
    if (end - first < MOST_DRAWN) return Array.from({length: end - first + 1}, (_, at) => first + at);
    const {allocated, reserved} = this.columns, rows = new Set([first, end]);
    for (let row = first; row <= end;) {
      const pixel = Math.floor(this.place(this.x[row]) * 2);
      let low = row, high = row, most = row, last = row;
      for (; last <= end && Math.floor(this.place(this.x[last]) * 2) === pixel; last++) {
        if (allocated[last] < allocated[low]) low = last;
        if (allocated[last] > allocated[high]) high = last;
        if (reserved[last] > reserved[most]) most = last;
      }
      for (const one of [row, low, high, most, last - 1]) rows.add(one);
      row = last;
    }
    return [...rows].sort((a, b) => a - b);
  }
  paint(first, end) {
    const {reserved} = this.columns, {spec, layer, x} = this, rows = this.worth(first, end);
    let highest = 1;
    for (let row = first; row <= end; row++) highest = Math.max(highest, reserved[row], this.columns.allocated[row]);
    const limit = spec.limit !== null && spec.limit < 1.6 * highest ? spec.limit : null;
    const top = Math.max(highest, limit || 0) * 1.06;
    const scale = (bytes) => this.bottom - (bytes / top) * (this.bottom - this.top);
    this.axes(top, scale);
    const floor = new Float64Array(spec.count), paths = [];
    for (const band of this.bands()) {
      let any = false;
      for (const row of rows) { floor[row] += band.bytes[row]; any ||= band.bytes[row] > 0; }
      if (!any) continue;
      const d = `${this.stairs(floor, rows, scale)}V${this.bottom}H${this.left}z`;
      paths.unshift(draw("path", {class: band.colour, d, "fill-opacity": band.opacity}));
      if (band.opacity < 1) paths.unshift(draw("path", {class: "k-paper", d})); // nothing behind shows through
    }
    layer.append(...paths, draw("path", {class: "l-reserved none", d: this.stairs(reserved, rows, scale)}));
    if (limit !== null) layer.append(draw("line", {class: "l-limit", x1: this.left, x2: this.right, y1: scale(limit), y2: scale(limit)}));
    let labelled = false;
    for (const entry of [...spec.ooms].reverse()) {
      const at = x[before(this.columns.entry, entry)];
      if (at < this.from || at > this.to) continue;
      const here = this.place(at);
      layer.append(draw("line", {class: "l-oom", x1: here, x2: here, y1: this.top, y2: this.bottom}));
      if (!labelled) layer.append(draw("text", {class: here > this.width / 2 ? "tick t-oom end" : "tick t-oom", x: here, y: this.top - 4}, "OOM"));
      labelled = true;
    }
    return top;
  }
  stairs(values, rows, scale) {
    const start = Math.max(this.left, this.place(this.x[rows[0]])).toFixed(1);
    const parts = [`M${start} ${scale(values[rows[0]]).toFixed(1)}`];
    for (let at = 1; at < rows.length; at++) {
      const row = rows[at];
      if (values[row] !== values[rows[at - 1]]) parts.push(`H${this.place(this.x[row]).toFixed(1)}V${scale(values[row]).toFixed(1)}`);
    }
    return `${parts.join("")}H${this.right}`;
  }
  axes(top, scale) {
    const {spec, layer} = this, [unit, step] = UNITS.find(([, one]) => top >= one) || ["B", 1];
    const starts = spec.steps.map(([entry]) => this.x[before(this.columns.entry, entry)]);
    starts.forEach((start, number) => {
      const stop = number + 1 < starts.length ? starts[number + 1] : this.whole[1];
      const [low, high] = [Math.max(start, this.from), Math.min(stop, this.to)];
      if (number % 2 === 0 && high > low && starts.length <= 80) {
        layer.append(draw("rect", {class: "k-band", x: this.place(low), width: this.place(high) - this.place(low), y: this.top, height: this.bottom - this.top}));
      }
    });
    for (const tick of ticks(0, top / step, 5)) {
      const y = scale(tick * step);
      layer.append(draw("line", {class: "grid", x1: this.left, x2: this.right, y1: y, y2: y}),
        draw("text", {class: "tick end", x: this.left - 5, y: y + 3}, tick ? `${+tick.toPrecision(4)} ${unit}` : "0"));
    }
    const span = this.to - this.from, timed = this.axis === "time";
    const [rate, name] = !timed ? [1, ""] : span < 0.002 ? [1e6, "microseconds"] : span < 2 ? [1e3, "milliseconds"]
      : span < 300 ? [1, "seconds"] : [1 / 60, "minutes"];
    const first = timed ? 0 : spec.first;
    for (const tick of ticks((this.from + first) * rate, (this.to + first) * rate, 8)) {
      const at = tick / rate - first, here = {class: "tick middle", x: this.place(at)};
      layer.append(draw("text", {...here, y: this.bottom + 14}, (+tick.toPrecision(9)).toLocaleString("en")));
      if (timed || !spec.timed) continue;
      const seconds = this.columns.time[before(this.columns.entry, at)];
      layer.append(draw("text", {...here, y: this.bottom + 25}, `${seconds < 0 ? "−" : ""}${duration(seconds)}`));
    }
    const words = timed ? `${name} relative to ${spec.zero}` : spec.timed ? `trace entry, and its time relative to ${spec.zero}` : "trace entry";
    layer.append(draw("text", {class: "tick middle", x: (this.left + this.right) / 2, y: this.bottom + 39}, words));
  }
  paintLegend() {
    if (!this.legend) return;
    const shown = this.bands().filter((band) => band.bytes.some((bytes) => bytes > 0) && band.colour !== "k-s-other");
    if (this.mode === "part") shown.sort((a, b) => a.key - b.key);
    const others = this.bands().find((band) => band.colour === "k-s-other");
    if (others) shown.push({...others, label: this.spec.sites.at(-1)[2], key: -1});
    this.legend.replaceChildren(...shown.map((band) => {
      const item = make("li"), key = draw("svg", {class: "key", width: 12, height: 12, "aria-hidden": "true"});
      key.append(draw("rect", {width: 12, height: 12, class: band.colour, "fill-opacity": band.opacity}));
      item.append(key, this.named(band));
      return item;
    }));
  }
  named(band) {
    const id = `${band.key < this.spec.told ? "site" : "later"}-${band.key}`;
    return band.mode === "site" && document.getElementById(id) ? make("a", band.label, {href: `#${id}`}) : make("span", band.label);
  }

  zoom(from, to) {
    const least = (this.whole[1] - this.whole[0]) * 1e-6;
    [this.from, this.to] = to - from > least ? [Math.max(from, this.whole[0]), Math.min(to, this.whole[1])] : this.whole;
    this.render();
  }
  instant(row) {
    const total = this.columns.allocated[row];
    const words = `${size(total)} allocated ${this.where(row).replace(" · ", ", ")}${this.nearest()}`;
    this.tell({words, rows: [row], where: this.where(row).replace(" · ", ", "), read: (bytes) => bytes[row], said: size, total});
  }
  range(first, end) {
    const {allocated} = this.columns;
    let peak = first;
    for (let row = first; row <= end; row++) if (allocated[row] > allocated[peak]) peak = row;
    const where = `from ${this.where(first)} to ${this.where(end)}`.replaceAll(" · ", ", ");
    const words = `F${where.slice(1)}: ${size(allocated[first])} to ${size(allocated[end])}, `
      + `at most ${size(allocated[peak])} (entry ${count(this.columns.entry[peak] + this.spec.first)}). Change:`;
    this.tell({words, rows: [first, end], where, read: (bytes) => bytes[end] - bytes[first], said: (bytes) => `${bytes > 0 ? "+" : ""}${size(bytes)}`, total: null});
  }
  /* What the selection holds, below the figure, and in the section Who: `read` gives a number, `said` its words. */
  tell(selection) {
    if (!this.panel) return;
    const lists = ["part", "site", "category"].map((mode) => {
      const word = this.holder.querySelector(`button[data-mode=${mode}]`).textContent;
      const block = make("div"), list = make("ol");
      const rows = this.bands(mode).map((band) => [band, selection.read(band.bytes)]).filter(([, value]) => value !== 0);
      rows.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
      for (const [band, value] of rows.slice(0, 8)) {
        const item = make("li");
        item.append(make("strong", selection.said(value)), " ", this.named(band));
        list.append(item);
      }
      block.append(make("p", `By ${word}`, {class: "quiet"}), rows.length ? list : make("p", "nothing"));
      return block;
    });
    const columns = make("div", undefined, {class: "three"}), more = make("p", "All of it: ");
    columns.append(...lists);
    more.append(make("a", "Who", {href: "#who"}), `, which shows ${selection.total === null ? "this change" : "this instant"} now. `, returning());
    this.panel.replaceChildren(make("p", selection.words, {class: "lead"}), columns, more);
    this.panel.hidden = false;
    follow(this, selection);
    this.panel.scrollIntoView({block: "nearest"});
  }

  listen() {
    const point = (event) => {
      const box = this.svg.getBoundingClientRect(), scale = this.width / box.width;
      const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
      return {x: Math.max(this.left, Math.min(this.right, x)), y};
    };
    const value = (x) => this.from + ((x - this.left) / (this.right - this.left)) * (this.to - this.from);
    const row = (x) => before(this.x, value(x));
    let start;
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button || event.pointerType === "touch") return;
      start = point(event).x;
      event.preventDefault();
    });
    this.svg.addEventListener("pointermove", (event) => {
      const {x, y} = point(event);
      this.show(row(x), this.bytesAt(y));
      if (start === undefined) return;
      this.brush.setAttribute("x", Math.min(start, x));
      this.brush.setAttribute("width", Math.abs(x - start));
    });
    addEventListener("pointerup", (event) => {
      if (start === undefined) return;
      const ends = [start, point(event).x].sort((a, b) => a - b);
      start = undefined;
      this.brush.setAttribute("width", 0);
      if (ends[1] - ends[0] < 6) return;
      this.dragged = true;
      const [first, end] = ends.map(row);
      this.zoom(...ends.map(value));
      this.range(first, end);
    });
    this.svg.addEventListener("click", (event) => {
      if (this.dragged) { this.dragged = false; return; }
      this.show(row(point(event).x), this.bytesAt(point(event).y));
      this.instant(this.at);
    });
    this.svg.addEventListener("dblclick", () => this.zoom(...this.whole));
    const region = this.holder.querySelector(".scroll");
    region.addEventListener("keydown", (event) => {
      const wanted = {ArrowLeft: this.at - 1, ArrowRight: this.at + 1, PageUp: this.at - 20, PageDown: this.at + 20, Home: 0, End: this.last}[event.key];
      if (wanted !== undefined) { event.preventDefault(); this.show(wanted); }
      if (event.key === "Enter" && this.panel) { this.instant(this.at); this.panel.focus(); }
      if (event.key === "Escape") this.zoom(...this.whole);
    });
    region.scrollLeft = region.scrollWidth; // on a narrow screen, the end is what matters
    for (const button of this.holder.querySelectorAll("button[data-axis]")) {
      button.hidden = !this.spec.timed;
      button.addEventListener("click", () => {
        this.along(button.dataset.axis);
        for (const one of this.holder.querySelectorAll("button[data-axis]")) one.setAttribute("aria-pressed", String(one === button));
        this.render();
      });
    }
    this.readout.textContent = this.panel ? "Point for values, click for holders, drag to zoom." : "Point to read exact values.";
    for (const button of this.holder.querySelectorAll("button[data-mode]")) {
      button.addEventListener("click", () => {
        this.mode = button.dataset.mode;
        for (const one of this.holder.querySelectorAll("button[data-mode]")) one.setAttribute("aria-pressed", String(one === button));
        this.render();
      });
    }
    for (const button of this.holder.querySelectorAll("button[data-zoom]")) {
      button.addEventListener("click", () => {
        const ends = button.dataset.zoom === "close" ? this.spec.close.map((entry) => this.x[before(this.columns.entry, entry)]) : this.whole;
        this.zoom(...ends);
      });
    }
  }
  /* Bytes at a height of the figure. What matplotlib drew is read off its highest tick. */
  bytesAt(y) {
    const top = this.highest || Number(this.svg.closest("[data-top]").dataset.top);
    const bytes = ((this.bottom - y) / (this.bottom - this.top)) * top;
    return bytes >= 0 && bytes <= top ? bytes : undefined;
  }
}
const timelines = () => Promise.all([...document.querySelectorAll("figure.timeline")].map(async (holder) => {
  const spec = data.figures && data.figures[holder.dataset.figure];
  if (!spec) return;
  if (typeof DecompressionStream === "undefined") {
    holder.querySelector(".readout").textContent = "This browser is too old to show exact values here.";
    return;
  }
  new Timeline(holder, spec, unpacked(spec, await inflated(spec.packed)));
}));
