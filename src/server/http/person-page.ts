/** A small page for a person who came here by a link: a sign-in that failed, or is done. */

/** `body`: HTML. Nothing of the request may be in it. */
export function personPage(status: number, body: string, cookie?: string): Response {
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Sign-in</title>${body}</html>`
  const headers = new Headers({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
  })
  if (cookie !== undefined) headers.set('set-cookie', cookie)
  return new Response(html, { status, headers })
}
