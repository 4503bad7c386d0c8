/* follow.js: the page of a running search, which `hwnas watch` serves: it asks for its data again and again, and is
 * built anew when they changed. What the reader had chosen stays. */

const FOLLOW_PAUSE = 2000; /* milliseconds */
const FOLLOW_HELD = "select, input:not([type=checkbox]), .plot"; /* who has one of these is about to use it */
const FOLLOW_WORDS = {
    waiting: "Waiting for the study: the search has not begun.", running: "Live: the search is running.",
    ended: "The search has ended.", stopped: "No process works on this study any more: the search was stopped.",
    gone: "hwnas watch does not answer: this is what it told last.",
};

function follow(source, root) {
    const words = el("p.follow", {role: "status"}, FOLLOW_WORDS.waiting), place = el("div"), kept = {};
    let tag = null, next = null;
    root.replaceChildren(words, place);
    place.addEventListener("change", (e) => e.target.matches("select") && e.target.blur());
    const tell = (state) => {
        words.dataset.state = state;
        if (words.textContent !== FOLLOW_WORDS[state])
            words.textContent = FOLLOW_WORDS[state];
    };
    const ask = async () => {
        try {
            const answer = await fetch(source, {cache: "no-store", headers: tag ? {"If-None-Match": tag} : {}});
            if (answer.status === 200) {
                next = await answer.json();
                tag = answer.headers.get("ETag");
            } else if (answer.status !== 204 && answer.status !== 304)
                throw new Error(`status ${answer.status}`);
            tell(answer.status === 204 ? "waiting" : answer.headers.get("Hwnas-Study") || "running");
        } catch {
            tell("gone");
        }
        /* Not under somebody's hands. */
        if (next && !(place.contains(document.activeElement) && document.activeElement.matches(FOLLOW_HELD))) {
            const at = scrollY;
            buildPage(new Study(next), place, kept);
            scrollTo(0, at);
            next = null;
        }
        setTimeout(ask, FOLLOW_PAUSE);
    };
    ask();
}
