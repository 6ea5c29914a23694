import {ask} from "./ask.js";

const hello = document.getElementById("hello");
ask({ask: "about"}).then(
  (about) => { hello.textContent = JSON.stringify(about); },
  (err) => { hello.textContent = err.message; });
