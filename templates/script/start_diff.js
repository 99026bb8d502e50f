sorting();
filtering();
hinting();
document.documentElement.dataset.ready = "true";
