/**
 * Told once what became of a request that this node keeps: another node has it for good (`settle`), or it
 * stays here. To routing it is the one whose duty the request is.
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
