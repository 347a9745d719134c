/// <reference lib="dom" />

/** Asks for the admin token. */
export function TokenForm({ problem, unlock }: {
  readonly problem: string | undefined;
  readonly unlock: (token: string) => void;
}) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const token = String(new FormData(event.currentTarget as HTMLFormElement).get("token")).trim();
    if (token !== "") unlock(token);
  };
  return (
    <section class="card token" aria-labelledby="token-title">
      <h2 id="token-title">Admin token</h2>
      <p>This node wants a token. The browser keeps it until this tab is closed.</p>
      <form onSubmit={submit}>
        <label for="token">Token</label>
        <input
          id="token"
          name="token"
          type="password"
          autocomplete="off"
          required
          aria-describedby="token-problem"
        />
        <button type="submit">Show the dashboard</button>
      </form>
      <p id="token-problem" class="failure" role="alert">{problem}</p>
    </section>
  );
}
