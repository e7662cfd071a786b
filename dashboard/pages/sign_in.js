// Where a token is asked for: in the place of each page, until the daemon knows who asks.
import * as api from '../api.js';
import { html, useState } from '../lib.js';
import { Command, Field, Head, Problem, toast } from '../ui.js';

// One field, which takes a token. `done(caller)` is called when it is known.
export function TokenForm({ done = () => {} }) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const enter = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      const caller = await api.signIn(new FormData(event.target).get('token').trim());
      toast('This browser is signed in for seven days.');
      done(caller);
    } catch (wrong) {
      setError(wrong);
    }
    setBusy(false);
  };
  const isWrong = error?.status === 401;
  return html`<form onSubmit=${enter}>${!isWrong && html`<${Problem} error=${error} />`}
    <${Field} label="Token" error=${isWrong ? error.message : null} hint="It becomes a cookie that no script can read."><input name="token"
        type="password" autocomplete="off" spellcheck=${false} required autofocus data-filter /><//>
    <div class="form-foot"><button class="primary" disabled=${busy}>Sign in</button></div></form>`;
}

export function SignInPage() {
  return html`<${Head} title="Sign in" /><section class="card sign-in" aria-label="Sign in"><div class="body">
    <p>This daemon asks who you are. Give a token of its file; this makes one that may look and change all:</p>
    <${Command} text="argiope token add NAME --scope admin" />
    <${TokenForm} /></div></section>`;
}
