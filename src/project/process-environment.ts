import type { Env } from './registry.ts'

interface DenoPermissions {
  permissions: { querySync(what: { name: 'env' }): { state: string } }
}

/**
 * The environment of the process, where there is one. Deno without `--allow-env` has none: each reading of a variable would throw, or
 * stop to ask the terminal.
 */
export function processEnvironment(): Env {
  const { process, Deno } = globalThis as { process?: { env?: Env }; Deno?: DenoPermissions }
  if (Deno !== undefined && Deno.permissions.querySync({ name: 'env' }).state !== 'granted') return {}
  return process?.env ?? {}
}
