// Fits the flame graphs of the page to the window, zooms and searches them. A click on a frame makes it as wide as the
// picture, with the frames above and below it; a click on the widest one returns. "search" asks for a text and marks the
// frames that contain it. Places and widths are per cent of the picture.
"use strict";
for (const graph of document.querySelectorAll("svg.flame")) {
  const frames = Array.from(graph.querySelectorAll("svg.frame"), (element) => ({
    element,
    x: parseFloat(element.getAttribute("x")),
    width: parseFloat(element.getAttribute("width")),
    text: element.querySelector("text"),
    name: element.querySelector("title").textContent.split("\n")[0],
    rect: element.querySelector("rect"),
  }));
  // The part of a name for which so many pixels have room: letters are 6.6 wide.
  const fitted = (name, pixels) => {
    const room = Math.max(Math.floor((pixels - 6) / 6.6), 0);
    return name.length <= room ? name : `${name.slice(0, Math.max(room - 1, 0))}…`;
  };
  let zoomed = null;
  const draw = () => {
    const to = zoomed ?? { x: 0, width: 100 };
    const scale = 100 / to.width;
    const pixels = graph.getBoundingClientRect().width;
    for (const frame of frames) {
      const left = Math.max((frame.x - to.x) * scale, 0);
      const right = Math.min((frame.x + frame.width - to.x) * scale, 100);
      const wide = ((right - left) / 100) * pixels;
      frame.element.setAttribute("display", wide > 0.3 ? "inline" : "none");
      frame.element.setAttribute("x", `${left}%`);
      frame.element.setAttribute("width", `${Math.max(right - left, 0)}%`);
      frame.text.textContent = fitted(frame.name, wide);
      frame.text.setAttribute("visibility", wide > 20 ? "visible" : "hidden");
    }
  };
  for (const frame of frames) {
    frame.element.style.cursor = "pointer";
    frame.element.addEventListener("click", () => {
      zoomed = zoomed === frame ? null : frame;
      draw();
    });
  }
  draw();
  window.addEventListener("resize", draw);
  const search = graph.querySelector("text.search");
  search.textContent = "search";
  search.addEventListener("click", () => {
    const typed = prompt("Mark frames that contain:", "");
    if (typed === null) {
      return;
    }
    const text = typed.toLowerCase();
    let covered = 0;
    let end = -1;
    const marked = frames.filter((frame) => text !== "" && frame.name.toLowerCase().includes(text));
    for (const frame of frames) {
      frame.rect.style.stroke = marked.includes(frame) ? "#c000c0" : "";
      frame.rect.style.strokeWidth = marked.includes(frame) ? 4 : "";
    }
    // Frames inside marked ones count once: they begin before the end of the one that contains them.
    for (const frame of marked.sort((a, b) => a.x - b.x || b.width - a.width)) {
      if (frame.x + frame.width > end) {
        covered += frame.x + frame.width - Math.max(frame.x, end);
        end = frame.x + frame.width;
      }
    }
    search.textContent = text === "" ? "search" : `${typed}: ${covered.toFixed(1)}% (search)`;
  });
}
