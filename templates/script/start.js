const links = () => {
  const reveal = () => {
    const target = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    if (!target) return;
    for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
    if (!/^(site|later)-/.test(target.id)) { target.scrollIntoView(); return; }
    target.closest("table").classList.add("all");
    const details = target.querySelector("details");
    if (details) details.open = true;
    target.scrollIntoView({block: "center"});
  };
  addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.getAttribute("href") === location.hash) reveal();
  });
  reveal();
};
/* Folds are printed, but for the stacks inside of tables: they would fill most of the paper. */
const printing = () => {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.fold:not([open]), #how:not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
};
sorting();
filtering();
flames();
links();
printing();
hinting();
timelines().then(() => {
  document.documentElement.dataset.ready = "true";
  performance.mark("ready");
});
