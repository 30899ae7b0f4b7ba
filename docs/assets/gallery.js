// The gallery shows what matches every word that is typed, as it is typed.
const gallery = document.querySelector("[data-gallery]");
if (gallery) {
  const box = gallery.querySelector("input");
  const told = gallery.querySelector("output");
  const cards = [...gallery.querySelectorAll(".gallery-card")];
  const groups = [...gallery.querySelectorAll("section")];
  const texts = cards.map((card) => card.textContent.toLowerCase().replaceAll("_", " "));
  const narrow = () => {
    const words = box.value.toLowerCase().replaceAll("_", " ").split(/\s+/).filter(Boolean);
    let count = 0;
    cards.forEach((card, at) => {
      card.hidden = !words.every((word) => texts[at].includes(word));
      count += !card.hidden;
    });
    for (const group of groups) group.hidden = !group.querySelector(".gallery-card:not([hidden])");
    told.textContent = `${count} of ${cards.length} corruptions`;
  };
  box.addEventListener("input", narrow);
  box.value = new URLSearchParams(location.search).get("find") ?? "";
  narrow();
}
