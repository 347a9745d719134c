import type { Noting } from "../ports.ts";

/** A message on its way into an archive, which ends when the test says so. */
export class OpenNoting implements Noting {
  isSettled = false;
  isStored = false;
  readonly #takenBack: () => void;
  #goOn: (() => void) | undefined;
  #isReady = false;
  readonly #told: (() => void)[] = [];

  /** @param takenBack called when it is taken back */
  constructor(takenBack: () => void) {
    this.#takenBack = takenBack;
  }

  whenSettled(call: () => void): void {
    if (this.isSettled) call();
    else this.#told.push(call);
  }

  whenReady(goOn: () => void): void {
    if (this.#isReady) goOn();
    else this.#goOn = goOn;
  }

  takeBack(): void {
    this.#takenBack();
  }

  /** Lets it go on before its archive has it. */
  goOn(): void {
    this.#isReady = true;
    this.#goOn?.();
    this.#goOn = undefined;
  }

  /** Ends its way. */
  end(isStored: boolean): void {
    this.isStored = isStored;
    this.isSettled = true;
    this.goOn();
    for (const call of this.#told.splice(0)) call();
  }
}
