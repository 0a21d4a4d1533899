/** The built page, as it stands in the package beside the server's code. Read on first use and kept: it does not change. */
import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import type { WebFile, WebFiles } from './routes/page.ts'

const types = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
])

/** Default folder: `dist/web` of this package, found from the sources and from the build. */
export function openWebFiles(folder: URL = builtPage()): WebFiles {
  const known = new Map<string, Promise<WebFile | undefined>>()

  async function load(path: string): Promise<WebFile | undefined> {
    const contentType = types.get(extname(path))
    const file = URL.parse(path, folder)
    // A path may lead anywhere: only what is in the folder is given.
    if (contentType === undefined || file?.href.startsWith(folder.href) !== true) return undefined
    try {
      return { body: new Uint8Array(await readFile(file)), contentType }
    } catch {
      return undefined
    }
  }

  return {
    async read(path) {
      const file = known.get(path) ?? load(path)
      // What is not there is not kept: anyone may ask for any name.
      if ((await file) !== undefined) known.set(path, file)
      return file
    },
  }
}

function builtPage(): URL {
  const { url } = import.meta
  const at = url.lastIndexOf('/src/server/')
  return at === -1 ? new URL(url.replace(/\/dist\/.*$/u, '/dist/web/')) : new URL('../../dist/web/', url)
}
