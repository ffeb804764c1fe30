
"use strict";
const link = location.hash.slice(1);
const refuse = (words) => {
  document.getElementById("words").textContent = words;
  const command = document.getElementById("command");
  command.textContent = `curl -X POST -H "Authorization: Bearer TOKEN" ${location.origin}/-/link`;
  command.hidden = false;
};
if (link) {
  // Nothing that is looked up later must find it.
  history.replaceState(null, "", location.pathname);
  fetch("/-/enter", { method: "POST", headers: { authorization: `Bearer ${link}` } }).then(
    (answer) => {
      if (answer.ok) location.reload();
      else refuse("This link was used, or is too old. Your local token makes another one:");
    },
    () => refuse("The sidecar does not answer. When it runs again, your local token makes a link:"),
  );
} else {
  refuse("The dashboard opens by a link that serves once. Your local token makes one:");
}
