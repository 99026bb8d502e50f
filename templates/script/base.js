/* The page is complete without its script, which adds exact values, zooming, sorting, filtering and search. The files
   of this folder are put together, in the order that page.py names, into one function. */
const data = JSON.parse(document.getElementById("data").textContent);
const make = (tag, text, attributes = {}) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};
const draw = (tag, attributes, text) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
};
const UNITS = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
const size = (bytes) => {
  const magnitude = Math.abs(bytes);
  for (const [unit, scale] of UNITS) {
    if (magnitude >= scale * 0.9995) {
      const value = magnitude / scale;
      const text = value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : Math.round(value).toLocaleString("en");
      return `${bytes < 0 ? "−" : ""}${text} ${unit}`;
    }
  }
  return `${bytes < 0 ? "−" : ""}${magnitude} B`;
};
const duration = (seconds) => {
  const span = Math.abs(seconds);
  if (span < 0.001) return `${Math.round(span * 1e6)} µs`;
  return span < 0.9995 ? `${(span * 1e3).toPrecision(3)} ms` : `${span < 99.95 ? span.toPrecision(3) : Math.round(span)} s`;
};
const count = (number) => number.toLocaleString("en");
