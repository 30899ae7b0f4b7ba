// Whoever looks for "--until" means the option; the search would leave out pages with a word that begins with dashes.
const post = window.Worker.prototype.postMessage;
window.Worker.prototype.postMessage = function (message, ...more) {
  const asked = typeof message?.data === "string";
  return post.call(this, asked ? { ...message, data: message.data.replace(/(^|\s)--+(?=\S)/g, "$1") } : message, ...more);
};
