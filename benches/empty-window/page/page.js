// Two frames after the page is there, it says so; then it puts what it is sent into one text node.
const { invoke, transformCallback } = window.__TAURI_INTERNALS__;
const text = document.querySelector("pre").appendChild(document.createTextNode(""));
requestAnimationFrame(() => requestAnimationFrame(() => invoke("painted")));
const id = transformCallback(({ message }) => {
  if (message) text.appendData(message.events[0].text);
});
invoke("subscribe", { channel: `__CHANNEL__:${id}` });
