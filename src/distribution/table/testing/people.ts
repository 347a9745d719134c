import { bareJid, fullJid } from "./table.ts";

/** Datacenters: the one whose table is tested, and another one. */
export const [HERE, THERE] = ["dc1.example.com", "dc2.example.com"];

/** An account with two sessions. */
export const BOB = bareJid("bob");
export const [PHONE, LAPTOP] = [fullJid("bob", "phone"), fullJid("bob", "laptop")];
