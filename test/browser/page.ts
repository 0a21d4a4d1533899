/** Serves an example's page from an origin of its own, bundled as a page is. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { rolldown } from 'rolldown'

export interface ServedPage {
  /** `http://127.0.0.1:<port>` */
  origin: string
  close(): Promise<void>
}

/** `index.html` of this folder and the scripts beside it that the page names, each in one file. */
export async function servePage(folder: string): Promise<ServedPage> {
  const html = readFileSync(resolve(folder, 'index.html'), 'utf8')
  const scripts = new Map<string, string>()
  for (const [, name] of html.matchAll(/<script type="module" src="\.(\/[\w-]+\.js)">/gu)) {
    scripts.set(name!, await bundled(resolve(folder, `.${name}`)))
  }
  const server = createServer(({ url }, response) => {
    const path = new URL(url!, 'http://page').pathname
    const script = scripts.get(path)
    const body = path === '/' ? html : script
    const type = script === undefined ? 'text/html' : 'text/javascript'
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': `${type}; charset=utf-8` }).end(body)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

async function bundled(input: string): Promise<string> {
  const bundle = await rolldown({
    input,
    platform: 'browser',
    // The version that the example's package.json names.
    resolve: {
      alias: {
        '@ag-ui/client': resolve('node_modules/ag-ui-client-old'),
        ...Object.fromEntries(
          ['client', 'react', 'ag-ui'].map((door) => [`millrace/${door}`, resolve(`src/${door}.ts`)]),
        ),
      },
    },
    logLevel: 'silent',
  })
  const { output } = await bundle.generate({ format: 'esm', codeSplitting: false })
  await bundle.close()
  return output[0].code
}
