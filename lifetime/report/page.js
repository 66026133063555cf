"use strict";
// Filter, zoom, copy and keys. The page is whole without this script; nothing here builds markup from text.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const leaks = all(".leak");
  const search = document.getElementById("search");
  const boxes = all(".controls input[type=checkbox]");
  document.documentElement.classList.add("js");

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const off = new Set(boxes.filter((box) => !box.checked).map((box) => `${box.name} ${box.value}`));
    let shown = 0;
    for (const leak of leaks) {
      const text = leak.textContent.toLowerCase();
      const { verdict, mark } = leak.dataset;
      leak.hidden = off.has(`verdict ${verdict}`) || off.has(`mark ${mark}`) || !words.every((word) => text.includes(word));
      shown += leak.hidden ? 0 : 1;
      for (const box of all(".graph .box", leak)) {
        const label = box.textContent.toLowerCase();
        box.classList.toggle("hit", words.length > 0 && words.some((word) => label.includes(word)));
      }
    }
    document.getElementById("count").textContent = `${shown} of ${leaks.length} shown`;
  }

  function zoomable(canvas) {
    const svg = canvas.querySelector("svg");
    const full = svg.viewBox.baseVal;
    const home = { x: full.x, y: full.y, width: full.width, height: full.height };
    let view = { ...home };
    function show(next) {
      const width = Math.min(Math.max(next.width, home.width / 12), home.width);
      const height = (width * home.height) / home.width;
      const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
      view = { width, height, x: clamp(next.x, home.x, home.x + home.width - width), y: clamp(next.y, home.y, home.y + home.height - height) };
      svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
      canvas.classList.toggle("zoomed", width < home.width);
    }
    function zoom(factor, at = { x: 0.5, y: 0.5 }) {
      const width = view.width * factor;
      const height = view.height * factor;
      show({ width, height, x: view.x + (view.width - width) * at.x, y: view.y + (view.height - height) * at.y });
    }
    const pan = (dx, dy) => show({ ...view, x: view.x + dx * view.width, y: view.y + dy * view.height });
    const actions = {
      "+": () => zoom(0.75), "=": () => zoom(0.75), "-": () => zoom(1 / 0.75), "0": () => show(home),
      ArrowLeft: () => pan(-0.15, 0), ArrowRight: () => pan(0.15, 0), ArrowUp: () => pan(0, -0.15), ArrowDown: () => pan(0, 0.15),
    };
    canvas.addEventListener("keydown", (event) => {
      const zoomed = canvas.classList.contains("zoomed");
      if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey || (event.key.startsWith("Arrow") && !zoomed)) return;
      actions[event.key]();
      event.preventDefault();
    });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      const area = svg.getBoundingClientRect();
      zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, { x: (event.clientX - area.left) / area.width, y: (event.clientY - area.top) / area.height });
      event.preventDefault();
    }, { passive: false });
    let held = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (!canvas.classList.contains("zoomed")) return;
      held = { x: event.clientX, y: event.clientY };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!held) return;
      const area = svg.getBoundingClientRect();
      pan((held.x - event.clientX) / area.width, (held.y - event.clientY) / area.height);
      held = { x: event.clientX, y: event.clientY };
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { held = null; });
    for (const button of all("button", canvas.nextElementSibling)) button.addEventListener("click", () => actions[button.dataset.key]());
  }

  async function copy(button) {
    const source = button.parentElement.querySelector("pre");
    try {
      await navigator.clipboard.writeText(source.textContent);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(source);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }

  function step(by) {
    const visible = leaks.filter((leak) => !leak.hidden);
    const at = visible.findIndex((leak) => leak.contains(document.activeElement));
    const next = visible[Math.min(Math.max(at + by, 0), visible.length - 1)];
    if (!next) return;
    next.open = true;
    next.querySelector("summary").focus();
    next.scrollIntoView({ block: "start" });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target === search) return;
    const keys = { "/": () => search.focus(), j: () => step(1), k: () => step(-1) };
    if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
  });
  search.addEventListener("input", filter);
  search.addEventListener("keydown", (event) => { if (event.key === "Escape") { search.value = ""; filter(); search.blur(); } });
  for (const box of boxes) box.addEventListener("change", filter);
  document.getElementById("all").addEventListener("click", (event) => {
    const open = leaks.some((leak) => !leak.hidden && !leak.open);
    for (const leak of leaks) leak.open = open;
    event.target.textContent = open ? "Close all" : "Open all";
  });
  function openTarget() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.classList.contains("leak")) target.open = true;
  }
  addEventListener("hashchange", openTarget);
  addEventListener("beforeprint", () => { for (const leak of all("details")) leak.open = true; });
  all(".canvas").forEach(zoomable);
  all(".with-copy button").forEach((button) => button.addEventListener("click", () => copy(button)));
  openTarget();
  filter();
})();
