"use strict";
/* Search by name, with the keyboard alone if one likes. Names come in scripts that call two functions here:
   that works from a file too, where a page may not fetch. Nothing read from them is ever used as markup. */
(function () {
  document.documentElement.classList.add("js");
  const SHOWN = 50;
  let directory = null;
  let failed = false;
  const shards = [];
  const waiting = [];
  const asked = new Set();
  let input, panel, status, list;
  let words = [];
  let active = -1;

  window.cellarDirectory = function (entries) {
    directory = entries;
    search();
  };
  window.cellarNames = function (number, pages) {
    const names = [];
    for (const [path, joined] of pages) {
      for (const name of joined.split("\n")) names.push({ name: name, folded: fold(name), path: path });
    }
    shards[number] = names;
    search();
  };

  function fold(text) {
    return text.normalize("NFC").toLowerCase();
  }

  function load(path) {
    if (asked.has(path)) return;
    asked.add(path);
    const script = document.createElement("script");
    script.src = document.body.dataset.root + path;
    script.onerror = function () {
      failed = true;
      search();
    };
    document.head.append(script);
  }

  function anchor(name) {
    const escaped = encodeURIComponent(name).replace(/%2F/g, "/");
    return escaped.replace(/[!'()*]/g, (sign) => "%" + sign.charCodeAt(0).toString(16).toUpperCase());
  }

  /* How well a name answers: 0 is best, null is not at all. */
  function rank(entry) {
    if (!words.every((word) => entry.folded.includes(word))) return null;
    const query = words[words.length - 1];
    const parts = entry.folded.split(/[/.]/);
    const last = parts[parts.length - 1];
    if (entry.folded === query || entry.folded.endsWith("/" + query)) return 0;
    if (last === query) return 1;
    if (entry.folded.includes("/" + query) || entry.folded.startsWith(query)) return 2;
    if (last.startsWith(query)) return 3;
    if (parts.some((part) => part.startsWith(query))) return 4;
    return 5;
  }

  /* The next part of the names to load: first those that may begin as the query does. */
  function next() {
    const missing = directory.map((_, number) => number).filter((number) => !shards[number]);
    const query = words[0];
    const kinds = new Set(directory.flatMap(([first, last]) => [first.split("/")[0], last.split("/")[0]]));
    const begins = (number) =>
      ["", ...[...kinds].map((kind) => kind + "/")].some((kind) => {
        const [first, last] = directory[number];
        return fold(first) <= kind + query + "\uffff" && fold(last) >= kind + query;
      });
    return missing.find(begins) ?? missing[0];
  }

  function search() {
    if (!words.length) return close();
    if (!directory) {
      load("names/directory.js");
      return tell(failed ? "The names could not be loaded." : "Loading the names …");
    }
    const missing = next();
    if (missing !== undefined) load("names/" + missing + ".js");
    const found = [];
    let count = 0;
    for (const names of shards) {
      for (const entry of names || []) {
        const ranked = rank(entry);
        if (ranked !== null) {
          count += 1;
          found.push([ranked, entry]);
        }
      }
    }
    found.sort((a, b) => a[0] - b[0] || a[1].name.length - b[1].name.length || (a[1].name < b[1].name ? -1 : 1));
    show(found.slice(0, SHOWN).map((pair) => pair[1]));
    if (missing !== undefined) {
      return tell(failed ? "A part of the names could not be loaded." : count.toLocaleString("en") + " so far …");
    }
    if (!count) return tell("No name holds this.");
    const elements = count === 1 ? "1 element" : count.toLocaleString("en") + " elements";
    tell(count > SHOWN ? elements + ", the best " + SHOWN + " shown" : elements);
  }

  function tell(text) {
    panel.hidden = false;
    input.setAttribute("aria-expanded", "true");
    if (status.textContent !== text) status.textContent = text;
  }

  function show(entries) {
    const chosen = active >= 0 && list.children[active] ? list.children[active].href : null;
    list.replaceChildren(
      ...entries.map(function (entry, number) {
        const link = document.createElement("a");
        link.id = "found-" + number;
        link.setAttribute("role", "option");
        link.setAttribute("aria-selected", "false");
        link.tabIndex = -1;
        link.href = document.body.dataset.root + entry.path + "#" + anchor(entry.name);
        const name = document.createElement("bdi");
        name.append(...marked(entry));
        link.append(name);
        return link;
      })
    );
    list.hidden = !entries.length;
    choose(chosen ? [...list.children].findIndex((link) => link.href === chosen) : -1);
  }

  /* The name with the first place of the longest word marked. */
  function marked(entry) {
    const word = [...words].sort((a, b) => b.length - a.length)[0];
    const place = entry.folded.indexOf(word);
    if (place < 0 || entry.folded.length !== entry.name.length) return [entry.name];
    const mark = document.createElement("b");
    mark.textContent = entry.name.slice(place, place + word.length);
    return [entry.name.slice(0, place), mark, entry.name.slice(place + word.length)];
  }

  function choose(number) {
    const before = list.children[active];
    if (before) before.setAttribute("aria-selected", "false");
    active = number;
    const now = list.children[active];
    if (now) {
      now.setAttribute("aria-selected", "true");
      now.scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", now.id);
    } else {
      input.removeAttribute("aria-activedescendant");
    }
  }

  function close() {
    panel.hidden = true;
    input.setAttribute("aria-expanded", "false");
    choose(-1);
  }

  function typed() {
    words = fold(input.value).split(/\s+/).filter(Boolean);
    active = -1;
    search();
  }

  function pressed(event) {
    const count = list.children.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (panel.hidden) return typed();
      if (count) choose((active + (event.key === "ArrowDown" ? 1 : active < 0 ? 0 : count - 1) + count) % count);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const link = list.children[Math.max(active, 0)];
      if (!panel.hidden && link) open(link.href);
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (panel.hidden) {
        input.value = "";
        input.blur();
      }
      close();
    }
  }

  function open(address) {
    close();
    input.blur();
    window.location.href = address;
  }

  /* On a page of elements the address names one of them: the window and a screen reader are told which. */
  function arrived() {
    const target = document.getElementById(window.location.hash.slice(1));
    if (target && target.tagName === "ARTICLE") {
      document.title = target.querySelector("h2").textContent.trim() + " · cellar";
      target.focus({ preventScroll: true });
    }
  }

  document.addEventListener("DOMContentLoaded", function () {
    input = document.getElementById("search");
    panel = document.getElementById("found");
    status = document.getElementById("found-status");
    list = document.getElementById("found-list");
    input.setAttribute("role", "combobox");
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-expanded", "false");
    input.setAttribute("aria-controls", "found-list");
    input.addEventListener("input", typed);
    input.addEventListener("keydown", pressed);
    input.addEventListener("focus", () => load("names/directory.js"));
    input.form.addEventListener("submit", (event) => event.preventDefault());
    input.form.addEventListener("focusout", function (event) {
      if (!input.form.contains(event.relatedTarget)) close();
    });
    list.addEventListener("click", () => window.setTimeout(close));
    document.addEventListener("keydown", function (event) {
      const at = event.target;
      const writes = at instanceof HTMLElement && (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName));
      if (event.key === "/" && !writes && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        input.focus();
        input.select();
      }
    });
    const asking = new URLSearchParams(window.location.search).get("q");
    if (asking) {
      input.value = asking;
      input.focus();
      typed();
    }
    window.addEventListener("hashchange", arrived);
    arrived();
  });
})();
