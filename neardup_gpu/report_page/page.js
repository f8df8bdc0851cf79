"use strict";
// What comes from documents is only ever set as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PAGE = 50;
  const commas = (number) => number.toLocaleString("en-US");
  const plural = (number, noun) => `${commas(number)} ${noun}${number === 1 ? "" : "s"}`;
  const between = (low, high) => (low === high ? commas(low) : `${commas(low)} to ${commas(high)}`);
  const at = (id) => document.getElementById(id);

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // Charts: each bar says on hovering what it says to screen readers.
  for (const bar of document.querySelectorAll(".chart path[aria-label]")) {
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = bar.getAttribute("aria-label");
    bar.append(title);
  }

  // ---------------------------------------------------------------------------------------- at another threshold

  const slider = at("threshold");
  if (slider) {
    const [first, last] = [data.steps[0][0], data.steps[data.steps.length - 1][0]];
    const mark = document.querySelector(".chart .threshold_marks");
    const line = mark && mark.querySelector("line");
    const start = line && line.getAttribute("transform");
    const width = 640; // of the plot, as charts.py has it
    if (mark) { // as wide as the plot, and below it
      const drawing = mark.closest("svg");
      const across = drawing.viewBox.baseVal.width / 100;
      const plot = /translate\(([-\d.]+)/.exec(drawing.querySelector("g").getAttribute("transform"));
      slider.style.marginLeft = `${Number(plot[1]) / across}%`;
      slider.style.width = `${width / across}%`;
    }
    const move = () => {
      const [threshold, least, most, pairs] = data.steps[slider.value];
      if (line) {
        const x = ((threshold - first) / (last - first)) * width;
        line.setAttribute("transform", start ? start.replace(/translate\([-\d.]+/, `translate(${x}`) : `translate(${x},0)`);
      }
      let change = "";
      if (slider.value > 0) {
        const [fewer, more] = [data.removed - most, data.removed - least];
        if (fewer >= 0) change = more === 0 ? ", as many as now" : `, ${between(fewer, more)} fewer than now`;
        else if (more <= 0) change = `, ${between(-more, -fewer)} more than now`;
      }
      const removed = least === most ? plural(least, "document") : `${between(least, most)} documents`;
      const text = `At ${threshold}: ${removed} removed${change}. ${plural(pairs, "listed pair")} ${pairs === 1 ? "reaches" : "reach"} it.`;
      at("at").textContent = text;
      slider.setAttribute("aria-valuetext", `${threshold}`);
    };
    slider.addEventListener("input", move);
    slider.closest(".slider").hidden = false;
    move();
  }

  // ---------------------------------------------------------------------------------------------- the browser of groups

  const list = at("groups");
  if (!list) return;
  const controls = document.querySelector(".controls");
  controls.hidden = false;
  controls.addEventListener("submit", (event) => event.preventDefault());
  const words = data.texts.map(([parts]) => parts.map((part) => part[1]).join("").toLowerCase());
  data.groups.forEach((group, number) => {
    group.number = number;
    const sources = (group.sources || []).map((source) => data.sources[source]);
    const ids = group.members.map((member) => member.id);
    group.texts = group.members.filter((member) => member.text !== undefined).map((member) => member.text);
    group.words = [group.id, ...ids, ...sources].join("\n").toLowerCase();
  });
  const chooser = at("source");
  if (chooser) {
    const names = data.sources.map((name, number) => [name, number]);
    names.sort((a, b) => (a[0] < b[0] ? -1 : 1));
    for (const [name, number] of names) {
      const option = element("option", "", name);
      option.value = number;
      chooser.append(option);
    }
  }
  const value = (id, usual) => (at(id) && at(id).value !== "" ? Number(at(id).value) : usual);
  const lowest = (group) => (group.least === undefined ? Infinity : group.least);
  const highest = (group) => (group.most === undefined ? -Infinity : group.most);
  const orders = {
    size: (a, b) => b.size - a.size || a.number - b.number,
    least: (a, b) => lowest(a) - lowest(b) || b.size - a.size || a.number - b.number,
    most: (a, b) => highest(b) - highest(a) || b.size - a.size || a.number - b.number,
    distance: (a, b) => b.members[0].distance - a.members[0].distance || b.size - a.size || a.number - b.number,
    id: (a, b) => a.id.localeCompare(b.id, "en", { numeric: true }),
  };
  let found = [];
  let shown = 0;

  function select() {
    const terms = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const smallest = value("smallest", 2);
    const [low, high] = [value("low", 0), value("high", 1)];
    const source = chooser ? chooser.value : "";
    const has = (group, term) => group.words.includes(term) || group.texts.some((text) => words[text].includes(term));
    found = data.groups.filter(
      (group) =>
        group.size >= smallest &&
        (group.least === undefined || (group.most >= low - 1e-9 && group.least <= high + 1e-9)) &&
        (source === "" || group.sources.includes(Number(source))) &&
        (!at("texted").checked || group.texts.length > 0) &&
        terms.every((term) => has(group, term)),
    );
    found.sort(orders[at("sort").value]);
    list.replaceChildren();
    shown = 0;
    at("found").textContent = `${plural(found.length, "group")} of ${commas(data.groups.length)} listed`;
    more();
  }

  function more() {
    const next = found.slice(shown, shown + PAGE);
    list.append(...next.map(row));
    shown += next.length;
    at("more").hidden = shown >= found.length;
  }

  function row(group) {
    const item = element("li");
    const heading = element("h3", "group");
    const button = element("button");
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    const id = element("bdi", "id", group.id);
    let range = "";
    if (group.least !== undefined) {
      const [low, high] = [group.least, group.most].map((worth) => (worth === 1 ? "1" : worth.toFixed(3)));
      range = `${data.measure} ${low === high ? low : `${low} to ${high}`}`;
    }
    if (data.distances) {
      const distance = `distance up to ${plural(group.members[0].distance, "bit")}`;
      range = range && group.least < 1 ? `${range}, ${distance}` : distance;
    }
    button.append(element("span", "size", plural(group.size, "document")), id, element("span", "range", range));
    heading.append(button);
    item.append(heading);
    let panel = null;
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-expanded") !== "true";
      if (!panel) {
        panel = members(group);
        panel.id = `group-${group.number}`;
        button.setAttribute("aria-controls", panel.id);
        item.append(panel);
      }
      panel.hidden = !open;
      button.setAttribute("aria-expanded", String(open));
    });
    return item;
  }

  function members(group) {
    const panel = element("div", "members");
    const where = group.reference ? " of the reference set" : "";
    const kept = element("p", "note", "Kept: ");
    kept.append(element("bdi", "", group.id), `${where}. Removed for it:`);
    panel.append(kept);
    for (const member of group.members) panel.append(removed(group, member));
    const others = group.size - 1 - group.members.length;
    if (others > 0) panel.append(element("p", "note", `and ${plural(others, "more document")}`));
    return panel;
  }

  function removed(group, member) {
    const box = element("div", "member");
    const heading = element("h4");
    heading.append(element("bdi", "", member.id));
    const facts = [];
    if (member.worth !== undefined) facts.push(`${data.measure} ${member.worth}`);
    if (member.distance !== undefined) facts.push(`distance ${plural(member.distance, "bit")}`);
    if (member.source !== undefined) facts.push(data.sources[member.source]);
    if (facts.length) heading.append(element("span", "", ` ${facts.join(", ")}`));
    box.append(heading);
    if (member.text !== undefined) {
      const [parts, notes] = data.texts[member.text];
      const sides = element("div", "sides");
      sides.append(side("kept", parts, 1, "del", 4), side("removed", parts, 2, "ins", 5));
      box.append(sides);
      if (parts.some(([kind]) => kind > 3))
        box.append(element("p", "note", "Framed words stand elsewhere in the other text: moved, or repeated."));
      for (const note of notes) box.append(element("p", "note", note));
    }
    box.append(command(member.command));
    return box;
  }

  // One side of a comparison. Words of kind 0 are in both texts, 1 only in the kept one, 2 only in the removed one; 3 is
  // a note in place of words; 4 are words of the kept text that the removed one has elsewhere, 5 the reverse.
  function side(title, parts, mine, tag, moved) {
    const box = element("div", "side");
    box.append(element("h5", "", title));
    const text = element("p");
    text.tabIndex = 0;
    text.dir = "auto";
    text.setAttribute("role", "region");
    text.setAttribute("aria-label", `the ${title} text`);
    for (const [kind, words] of parts) {
      if (kind === 0) text.append(words);
      else if (kind === mine) text.append(element(tag, "", words.trimEnd()), words.slice(words.trimEnd().length));
      else if (kind === moved) text.append(element("span", "moved", words.trimEnd()), words.slice(words.trimEnd().length));
      else if (kind === 3) text.append(element("span", "cut", ` ${words} `));
    }
    box.append(text);
    return box;
  }

  function command(words) {
    const line = element("p", "command");
    const code = element("code", "", words);
    const button = element("button", "", "Copy");
    button.type = "button";
    button.setAttribute("aria-label", "Copy the command that explains this");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(words);
      } catch {
        const range = document.createRange();
        range.selectNodeContents(code);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        if (!document.execCommand("copy")) {
          button.textContent = "Selected";
          return;
        }
      }
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    line.append(code, button);
    return line;
  }

  for (const button of document.querySelectorAll("button[data-source]")) {
    const source = data.sources.indexOf(button.dataset.source);
    button.hidden = source < 0;
    button.addEventListener("click", () => {
      chooser.value = source;
      select();
      at("browser").scrollIntoView();
      chooser.focus({ preventScroll: true });
    });
  }
  for (const control of controls.querySelectorAll("input, select")) control.addEventListener("input", select);
  at("more").addEventListener("click", () => {
    const before = list.children.length;
    more();
    list.children[before].querySelector("button").focus();
  });
  select();
})();
