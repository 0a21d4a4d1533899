/** The server that editors run for YAML (`yaml-language-server`), spoken to as an editor does: LSP over stdio. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { onTestFinished } from 'vitest'

export interface Diagnostic {
  message: string
  range: { start: { line: number; character: number } }
}
interface Message {
  id?: number
  method?: string
  params?: unknown
  result?: unknown
}

/** What it gets over stdin and stdout, framed: https://microsoft.github.io/language-server-protocol. */
export async function openEditor(dir: string) {
  const root = dirname(createRequire(import.meta.url).resolve('yaml-language-server/package.json'))
  const child = spawn(process.execPath, [join(root, 'bin/yaml-language-server'), '--stdio'], { cwd: dir })
  const ended = new Promise((done) => child.on('close', done))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const waiting = new Map<number, (result: unknown) => void>()
  const diagnostics = new Map<string, (found: Diagnostic[]) => void>()
  let buffer = Buffer.alloc(0)
  let lastId = 0

  function send(message: Message): void {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message })
    child.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  }

  function take({ id, method, params, result }: Message): void {
    if (method === 'textDocument/publishDiagnostics') {
      const { uri, diagnostics: found } = params as { uri: string; diagnostics: Diagnostic[] }
      diagnostics.get(uri)?.(found)
    } else if (method === 'workspace/configuration') {
      // What an editor's user has set: nothing but that files are checked, and that no schemas are fetched.
      const own = { yaml: { validate: true, hover: true, completion: true, schemaStore: { enable: false } } }
      const { items } = params as { items: { section: keyof typeof own }[] }
      send({ id: id!, result: items.map(({ section }) => own[section] ?? null) })
    } else if (method !== undefined && id !== undefined) send({ id, result: null })
    else if (id !== undefined) waiting.get(id)?.(result)
  }

  child.stdout.on('data', (chunk: Buffer) => {
    buffer = Buffer.concat([buffer, chunk])
    for (;;) {
      const head = buffer.indexOf('\r\n\r\n')
      const length = Number(/Content-Length: (\d+)/u.exec(buffer.toString('latin1', 0, Math.max(head, 0)))?.[1])
      if (head < 0 || buffer.length < head + 4 + length) return
      const body = buffer.toString('utf8', head + 4, head + 4 + length)
      buffer = buffer.subarray(head + 4 + length)
      take(JSON.parse(body) as Message)
    }
  })

  function request<T>(method: string, params: unknown): Promise<T> {
    const id = ++lastId
    send({ id, method, params })
    return new Promise((done) => waiting.set(id, done as (result: unknown) => void))
  }

  const rootUri = pathToFileURL(dir).href
  await request('initialize', {
    processId: process.pid,
    rootUri,
    workspaceFolders: [{ uri: rootUri, name: 'agents' }],
    capabilities: { workspace: { configuration: true }, textDocument: { hover: {}, completion: {} } },
  })
  send({ method: 'initialized', params: {} })

  let version = 0
  return {
    /** Opens a file of the folder, or what it is to hold, and gives what is wrong with it. */
    open(name: string, text = readFileSync(join(dir, name), 'utf8')): Promise<Diagnostic[]> {
      const uri = pathToFileURL(join(dir, name)).href
      const found = new Promise<Diagnostic[]>((done) => diagnostics.set(uri, done))
      send({
        method: 'textDocument/didOpen',
        params: { textDocument: { uri, languageId: 'yaml', version: ++version, text } },
      })
      return found
    },
    /** Lines and characters from 0. */
    async hover(name: string, line: number, character: number): Promise<string> {
      const textDocument = { uri: pathToFileURL(join(dir, name)).href }
      const position = { line, character }
      const answer = await request<{ contents: unknown } | null>('textDocument/hover', { textDocument, position })
      return JSON.stringify(answer?.contents ?? '')
    },
    async complete(name: string, line: number, character: number): Promise<string[]> {
      const textDocument = { uri: pathToFileURL(join(dir, name)).href }
      const params = { textDocument, position: { line, character } }
      const { items } = await request<{ items: { label: string }[] }>('textDocument/completion', params)
      return items.map(({ label }) => label)
    },
  }
}
