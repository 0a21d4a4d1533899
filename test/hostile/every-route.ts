/** Every route that reads runs, asked about one. */
import type { Handler } from '../../src/server/handler-context.ts'
import { builtinWires } from '../../src/wire/builtin-wires.ts'

const origin = 'http://127.0.0.1'

/** Paths of GET requests: `:id` and `:thread` stand for the run and its thread, each encoded. */
export const ofOne: readonly string[] = [
  '/api/runs/:id',
  '/api/runs/:id?at=1',
  '/api/runs/:id?at=:last',
  '/api/runs/:id/events',
  '/api/runs/:id/events?merge=1&cut=100&limit=50',
  '/api/runs/:id/events?before=:last&limit=5',
  '/api/runs/:id/events?types=text-delta,tool-call,run-end',
  '/api/runs/:id/events?step=main%2Fanswer&limit=9',
  '/api/runs/:id/requests',
  '/api/runs/:id/outline',
  '/api/runs/:id/outline?after=1',
  '/api/runs/:id/prompt?step=main%2Fanswer%2F1',
  '/api/runs/:id/export',
  '/api/runs/:id/programs',
  '/api/runs/:id/programs?at=:last&own=0',
  ...[...builtinWires.keys()].flatMap((format) => [
    `/api/runs/:id/replay?speed=max&format=${format}`,
    `/api/runs/:id/replay?speed=max&format=${format}&from=1&to=:last`,
  ]),
  '/api/diff?a=:id&b=:id',
  '/api/threads/:thread',
  '/api/threads/:thread?messages=1',
  '/api/threads/:thread?messages=2&messagesBefore=:id%3A',
  '/api/runs?thread=:thread',
  '/api/runs?before=:id',
]

/** They go on until the run has ended. */
export const followed: readonly string[] = [
  '/api/runs/:id/events?follow=1',
  '/api/chat/:thread/stream',
  '/ag-ui/a/connect?threadId=:thread',
]

export const ofAll: readonly string[] = [
  '/api/runs?limit=1000',
  '/api/runs?q=a',
  '/api/runs?status=completed,failed',
  '/api/threads?limit=1000',
  '/api/threads?q=a',
  '/api/threads?status=idle',
  '/api/search?q=a*',
  '/api/stats',
  '/api/stats?since=1970-01-01T00:00:00Z&until=2999-01-01T00:00:00Z',
  '/api/stats?window=7d',
  '/metrics',
  '/health',
  '/api/server',
  '/api/agents',
  '/v1/models',
  '/',
]

export interface Asked {
  path: string
  status: number
  text: string
}

/** Asks all of them. A body that breaks off is its error. */
export async function askAll(
  handler: Handler,
  paths: readonly string[],
  { id, thread, last }: { id: string; thread: string; last: number },
): Promise<Asked[]> {
  const asked: Asked[] = []
  for (const each of paths) {
    const path = each
      .replaceAll(':id', encodeURIComponent(id))
      .replaceAll(':thread', encodeURIComponent(thread))
      .replaceAll(':last', String(last))
    const response = await handler(new Request(origin + path))
    let text: string
    try {
      text = await response.text()
    } catch (error) {
      text = String(error)
    }
    asked.push({ path, status: response.status, text })
  }
  return asked
}

export async function importTo(handler: Handler, text: string): Promise<{ status: number; text: string }> {
  const headers = { 'content-type': 'application/x-ndjson' }
  const response = await handler(new Request(`${origin}/api/runs/import`, { method: 'POST', headers, body: text }))
  return { status: response.status, text: await response.text() }
}
