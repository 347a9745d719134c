import type { RefObject } from "preact";

/** Field for an address, without the corrections that keyboards of phones make. */
export function JidInput(
  { id, name = "jid", placeholder = "alice@example.com", isDisabled, input }: {
    readonly id: string;
    readonly name?: string;
    readonly placeholder?: string;
    readonly isDisabled?: boolean;
    readonly input?: RefObject<HTMLInputElement | null>;
  },
) {
  return (
    <input
      id={id}
      ref={input ?? null}
      name={name}
      type="text"
      inputMode="email"
      autocomplete="off"
      autocapitalize="none"
      spellcheck={false}
      maxLength={3071}
      placeholder={placeholder}
      disabled={isDisabled === true}
    />
  );
}
