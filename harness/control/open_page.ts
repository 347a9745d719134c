/** Returns the program that opens an address in the person's browser; undefined without a screen. */
function opener(): readonly [program: string, ...args: string[]] | undefined {
  switch (Deno.build.os) {
    case "darwin":
      return ["open"];
    case "windows":
      return ["explorer"];
    default: {
      // Without a screen `xdg-open` may start a browser in this very terminal.
      const hasScreen = ["DISPLAY", "WAYLAND_DISPLAY"].some((name) => Deno.env.get(name));
      return hasScreen ? ["xdg-open"] : undefined;
    }
  }
}

/** Opens `address` in a browser. Returns a line that says whether that went well. */
export async function openPage(address: string): Promise<string> {
  const command = opener();
  const byHand = `Open ${address} in a browser`;
  if (command === undefined) return byHand;
  const [program, ...args] = command;
  try {
    const { success } = await new Deno.Command(program, {
      args: [...args, address],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).output();
    // Windows' program says that it failed either way.
    return success || Deno.build.os === "windows" ? `${address} is open in a browser` : byHand;
  } catch {
    return byHand; // there is no such program
  }
}
