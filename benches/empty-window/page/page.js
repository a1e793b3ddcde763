// Two frames after the page is there, it says so; then it puts what it is sent into one text node and keeps its end in sight.
const { invoke, transformCallback } = window.__TAURI_INTERNALS__;
const main = document.querySelector("main");
const text = document.querySelector("pre").appendChild(document.createTextNode(""));
requestAnimationFrame(() => requestAnimationFrame(() => invoke("painted")));
const id = transformCallback(({ message }) => {
  if (!message) return;
  text.appendData(message.events[0].text);
  main.scrollTop = main.scrollHeight;
});
invoke("subscribe", { channel: `__CHANNEL__:${id}` });
