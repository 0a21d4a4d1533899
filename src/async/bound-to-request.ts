/**
 * Whether the platform ends with a request what the request began: timers, `setImmediate`, calls of models. Cloudflare's workerd drops it
 * when a client leaves, Vercel's edge runtime when the response has been sent. Only a promise given to `waitUntil` holds it.
 */
export function isBoundToRequest(): boolean {
  const { navigator, EdgeRuntime } = globalThis as { navigator?: { userAgent?: string }; EdgeRuntime?: unknown }
  return navigator?.userAgent === 'Cloudflare-Workers' || typeof EdgeRuntime === 'string'
}
