import type { McpServer } from '../server.ts'
import type { SignIns, SignInsOptions } from './sign-ins.ts'

/** Loads the libraries with the first sign-in, which most processes never see. */
export function lazySignIns(servers: ReadonlyMap<string, McpServer>, options: SignInsOptions): SignIns {
  let loaded: Promise<SignIns> | undefined
  const load = () => (loaded ??= import('./sign-ins.ts').then((module) => module.createSignIns(servers, options)))
  return {
    source: async (server, caller) => (await load()).source(server, caller),
    begin: async (asked) => (await load()).begin(asked),
    finish: async (flow, back) => (await load()).finish(flow, back),
    signOut: async (...given) => (await load()).signOut(...given),
  }
}
