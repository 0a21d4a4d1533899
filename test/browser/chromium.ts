/**
 * A real browser for tests: the headless Chromium that an npm package brings along, so that nothing has to be installed besides
 * `npm ci`. On other machines than Linux on x64, the Chrome that is installed there.
 */
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { createBrotliDecompress } from 'node:zlib'
import {
  chromium,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type LaunchOptions,
} from 'playwright-core'

/** A browser that is started again when it has crashed, so that one crash fails one test. */
export interface TestBrowser {
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>
  close(): Promise<void>
}

export interface FoundBrowser {
  browser?: TestBrowser
  /** Behind the name of what is skipped: why there is no browser here. */
  fault: string
}

let found: Promise<FoundBrowser> | undefined

/** One browser for all files of tests in this process, with which it ends. Each test has a context of its own. */
export const launchBrowser = (): Promise<FoundBrowser> => (found ??= launch())

async function launch(): Promise<FoundBrowser> {
  try {
    const isPacked = process.platform === 'linux' && process.arch === 'x64'
    const where: LaunchOptions = isPacked ? { executablePath: await unpack() } : { channel: 'chrome' }
    return { browser: await restarting(() => start(where)), fault: '' }
  } catch (error) {
    const reason = String((error as Error).message)
    // It ran here, or it should: a machine that lacks its libraries says so in the message.
    if (process.env['CI'] !== undefined && !reason.includes('shared libraries')) throw error
    return { fault: ` (no browser here: ${reason.split('\n', 1)[0]})` }
  }
}

async function restarting(launchOne: () => Promise<Browser>): Promise<TestBrowser> {
  let current = launchOne()
  await current
  return {
    close: async () => (await current).close(),
    async newContext(options) {
      let browser = await current
      if (!browser.isConnected()) browser = await (current = launchOne())
      try {
        return await browser.newContext(options)
      } catch (error) {
        if (browser.isConnected()) throw error
        return (await (current = launchOne())).newContext(options)
      }
    },
  }
}

/** A busy machine may take longer than Chromium waits for its own processes: it is tried again. */
async function start(where: LaunchOptions): Promise<Browser> {
  for (let tries = 1; ; tries++) {
    try {
      // Tests of the build run as root, where Chromium has no sandbox. Every page is our own.
      return await chromium.launch({ ...where, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] })
    } catch (error) {
      if (tries === 3 || String(error).includes('shared libraries')) throw error
    }
  }
}

/** Unpacks the browser once for all test processes, and returns its path. */
async function unpack(): Promise<string> {
  const packed = fileURLToPath(new URL('../bin/chromium.br', import.meta.resolve('@sparticuz/chromium')))
  const cache = resolve('node_modules/.cache/chromium')
  // Another version of the package has another size.
  const path = join(cache, `chromium-${statSync(packed).size}`)
  if (existsSync(path)) return path
  mkdirSync(cache, { recursive: true })
  const own = mkdtempSync(join(cache, 'unpacking-'))
  try {
    const target = createWriteStream(join(own, 'chromium'), { mode: 0o755 })
    await pipeline(createReadStream(packed), createBrotliDecompress({ chunkSize: 2 ** 20 }), target)
    // Another process may have been faster. Both have the same file.
    renameSync(join(own, 'chromium'), path)
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
  return path
}
