// Zooms and searches the flame graphs of the page. A click on a frame makes it as wide as the picture, with the frames
// above and below it; a click on the widest one returns. "search" asks for a text and marks the frames that contain it.
"use strict";
for (const graph of document.querySelectorAll("svg.flame")) {
  const whole = graph.viewBox.baseVal.width;
  const frames = Array.from(graph.querySelectorAll("svg.frame"), (element) => ({
    element,
    x: Number(element.getAttribute("x")),
    width: Number(element.getAttribute("width")),
    text: element.querySelector("text"),
    name: element.querySelector("title").textContent.split("\n")[0],
    rect: element.querySelector("rect"),
  }));
  // The part of a name for which a frame has room: letters are 6.6 wide.
  const fitted = (name, width) => {
    const room = Math.max(Math.floor((width - 6) / 6.6), 0);
    return name.length <= room ? name : `${name.slice(0, Math.max(room - 1, 0))}…`;
  };
  const zoom = (to) => {
    const scale = whole / to.width;
    for (const frame of frames) {
      const left = Math.max((frame.x - to.x) * scale, 0);
      const right = Math.min((frame.x + frame.width - to.x) * scale, whole);
      const isVisible = right - left > 0.3;
      frame.element.setAttribute("display", isVisible ? "inline" : "none");
      frame.element.setAttribute("x", left);
      frame.element.setAttribute("width", Math.max(right - left, 0));
      frame.text.textContent = fitted(frame.name, right - left);
      frame.text.setAttribute("visibility", right - left > 20 ? "visible" : "hidden");
    }
  };
  let zoomed = null;
  for (const frame of frames) {
    frame.element.style.cursor = "pointer";
    frame.element.addEventListener("click", () => {
      zoomed = zoomed === frame ? null : frame;
      zoom(zoomed ?? { x: 0, width: whole });
    });
  }
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
      frame.rect.setAttribute("stroke", marked.includes(frame) ? "#c000c0" : "#ffffff");
      frame.rect.setAttribute("stroke-width", marked.includes(frame) ? 4 : 1);
    }
    // Frames inside marked ones count once: they begin before the end of the one that contains them.
    for (const frame of marked.sort((a, b) => a.x - b.x || b.width - a.width)) {
      if (frame.x + frame.width > end) {
        covered += frame.x + frame.width - Math.max(frame.x, end);
        end = frame.x + frame.width;
      }
    }
    search.textContent = text === "" ? "search" : `${typed}: ${((100 * covered) / whole).toFixed(1)}% (search)`;
  });
}
