/** Requests to the server that this page comes from, with the key of this tab. */
import { MillraceClient } from '../../src/client/client.ts'
import { request, type RequestOptions } from '../../src/client/request.ts'
import { readEditToken } from './edit-token.ts'
import { keyRefused, readKey } from './key.ts'

/** What a person has started here is told apart from what programs start. */
const own = { 'x-millrace-client': 'page' }

/** The key may change while the page is open, so each request asks for it. */
export function client(): MillraceClient {
  const apiKey = readKey()
  return new MillraceClient({
    headers: own,
    ...(apiKey === undefined ? undefined : { apiKey }),
    async fetch(input, init) {
      const response = await globalThis.fetch(input, init)
      if (response.status === 401) keyRefused(apiKey)
      return response
    },
  })
}

/** Rejects with a `MillraceError` with the server's code. */
export async function fetchApi(path: string, init: RequestOptions = {}): Promise<Response> {
  const key = readKey()
  const headers: Record<string, string> = {
    ...own,
    ...(key === undefined ? undefined : { authorization: `Bearer ${key}` }),
  }
  const editToken = readEditToken()
  // Nothing is edited without a method.
  if (editToken !== undefined && init.method !== undefined) headers['x-millrace-edit-token'] = editToken
  try {
    return await request({ url: '', headers, fetch: globalThis.fetch.bind(globalThis) }, path, init)
  } catch (error) {
    if ((error as { code?: unknown }).code === 'unauthorized') keyRefused(key)
    throw error
  }
}

export async function api<T>(path: string, init: RequestOptions = {}): Promise<T> {
  return (await (await fetchApi(path, init)).json()) as T
}
