/**
 * Learns once what became of a request that this node keeps: another node has taken it over
 * (`settle`), or it stays here. Routing reports to it as to the holder of the request's duty.
 */
export class KeptRequest {
  #ended: ((isElsewhere: boolean) => void) | undefined;

  constructor(ended: (isElsewhere: boolean) => void) {
    this.#ended = ended;
  }

  settle(): void {
    this.#end(true);
  }

  stays(): void {
    this.#end(false);
  }

  #end(isElsewhere: boolean): void {
    const ended = this.#ended;
    this.#ended = undefined;
    ended?.(isElsewhere);
  }
}
