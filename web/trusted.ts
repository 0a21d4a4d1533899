/** The page's Trusted Types policy: it names scripts of this origin's assets for workers, and nothing else. */

interface Policy {
  createScriptURL(url: string): unknown
}

interface PolicyFactory {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): Policy
}

/** Made once: a page can make a policy of a name only once. */
let policy: Policy | undefined

/**
 * The URL of a worker's script, as `new Worker(…)` takes it under the page's policy. `url` is what Vite gives for an import of
 * `./file.ts?worker&url`.
 */
export function workerUrl(url: string): string {
  const { trustedTypes } = globalThis as { trustedTypes?: PolicyFactory }
  if (trustedTypes === undefined) return assetUrl(url)
  policy ??= trustedTypes.createPolicy('millrace', { createScriptURL: assetUrl })
  // `Worker` takes this object; the types of the DOM know strings only.
  return policy.createScriptURL(url) as string
}

/** Throws for anything but a script among the page's assets. */
export function assetUrl(url: string, base: string = location.origin): string {
  const { origin, pathname, href } = new URL(url, base)
  if (origin !== new URL(base).origin || !/^\/assets\/[\w.-]+\.js$/u.test(pathname)) {
    throw new TypeError(`Not a script of this page: ${url}`)
  }
  return href
}
