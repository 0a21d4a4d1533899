/**
 * The page: its shell at the paths of its rooms, and the files that the shell loads. Both need no key, because they contain no data of this server;
 * the page gets its data from the other routes. The policy allows scripts of this origin only.
 */
import type { App } from '../http/router.ts'
import { preferredType } from '../http/query.ts'
import { isRoute } from './unknown-route.ts'

export interface WebFile {
  body: Uint8Array<ArrayBuffer>
  contentType: string
}

/** The built page. */
export interface WebFiles {
  /** A file by its path below the page's folder, such as `index.html` or `assets/main-1a2b3c.js`. */
  read(path: string): Promise<WebFile | undefined>
}

const rooms = /^\/(?:(?:chat|runs|agents|threads|tests)(?:\/[^/]+)?|beside|compare|overview)?$/u
const files = /^\/(?:assets\/[\w.-]+|icon\.svg)$/u

export function isPagePath(path: string): boolean {
  return rooms.test(path) || files.test(path)
}

/** Whether a person has opened an address that nothing has: a browser gets the page, which says so. */
export function isLostVisit(app: App, request: Request, path: string): boolean {
  if (!/^(?:GET|HEAD)$/u.test(request.method) || request.headers.get('accept')?.includes('text/html') !== true)
    return false
  if (isPagePath(path) || preferredType(request, ['text/html', 'application/json']) !== 'text/html') return false
  return !['GET', 'POST', 'DELETE'].some((method) => isRoute(app, method, path))
}

export function mountPage(app: App, web: WebFiles): void {
  const packed: Packed = new Map()
  app.get('*', async (c, next) => {
    const { path } = c.req
    if (files.test(path)) return (await fileResponse(web, c.req.raw, path, packed)) ?? next()
    if (!rooms.test(path) || preferredType(c.req.raw, ['text/html', 'application/json']) !== 'text/html') return next()
    return (await shellResponse(web)) ?? next()
  })
}

export async function shellResponse(web: WebFiles, status = 200): Promise<Response | undefined> {
  const shell = await web.read('index.html')
  if (shell === undefined) return undefined
  const nonce = crypto.randomUUID()
  const html = new TextDecoder().decode(shell.body).replaceAll('__NONCE__', nonce)
  return new Response(html, {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      vary: 'accept',
      'content-security-policy': policy(nonce),
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    },
  })
}

/** Files by their path, compressed when they were first asked for. Their names have a hash of what they contain. */
type Packed = Map<string, Promise<Uint8Array<ArrayBuffer>>>

function acceptsGzip({ headers }: Request): boolean {
  const codings = headers.get('accept-encoding')?.split(',') ?? []
  return codings.some((each) => {
    const [name, weight = ''] = each.split(';')
    return name!.trim().toLowerCase() === 'gzip' && !/^\s*q=0(?:\.0*)?\s*$/u.test(weight)
  })
}

async function fileResponse(
  web: WebFiles,
  request: Request,
  path: string,
  packed: Packed,
): Promise<Response | undefined> {
  const file = await web.read(path.slice(1))
  if (file === undefined) return undefined
  // The worker's script needs its own policy header, equal to the page's.
  const isHashed = path.startsWith('/assets/')
  const isPacked = isHashed && file.body.length > 1000 && acceptsGzip(request)
  if (isPacked && !packed.has(path)) packed.set(path, gzip(file.body))
  return new Response(isPacked ? await packed.get(path)! : file.body, {
    headers: {
      'content-type': file.contentType,
      ...(isPacked && { 'content-encoding': 'gzip' }),
      vary: 'accept-encoding',
      'cache-control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
      'content-security-policy': policy(),
      'cross-origin-resource-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    },
  })
}

async function gzip(body: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([body]).stream().pipeThrough(new CompressionStream('gzip'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

function policy(nonce?: string): string {
  const styles = nonce === undefined ? `'self'` : `'self' 'nonce-${nonce}'`
  return [
    `default-src 'none'`,
    `script-src 'self'`,
    `style-src ${styles}`,
    `img-src 'self' data: blob:`,
    `connect-src 'self'`,
    `worker-src 'self'`,
    `base-uri 'none'`,
    `form-action 'none'`,
    `frame-ancestors 'none'`,
    `require-trusted-types-for 'script'`,
    `trusted-types millrace`,
  ].join('; ')
}
