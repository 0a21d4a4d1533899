/** Answers unknown paths (404) and methods (405) with the nearest route and the list of routes. */
import type { App } from '../http/router.ts'
import { MillraceError } from '../../part/error.ts'
import { listNames, nearest } from '../../pipeline/nearest.ts'
import { isOpenAiPath } from '../openai/error.ts'
import { errorResponse } from '../../delivery/http-error.ts'

/** The page's route matches every path, and does not count. */
export function isRoute(app: App, method: string, path: string): boolean {
  return app.router.match(method, path)[0].some(([[, route]]) => route.path !== '/*')
}

/** `respond`: in the form of the path's protocol. */
export function unknownRoute(
  app: App,
  { path, method }: { path: string; method: string },
  respond: (error: MillraceError) => Response = errorResponse,
): Response {
  const allowed = ['GET', 'POST', 'DELETE'].filter((m) => m !== method && isRoute(app, m, path))
  if (allowed.length > 0) {
    const error = new MillraceError('method-not-allowed', `${path} accepts ${allowed.join(', ')}, not ${method}.`)
    const response = respond(error)
    response.headers.set('allow', allowed.join(', '))
    return response
  }
  const paths = [...new Set(app.routes.map((route) => route.path))].filter((each) => each !== '/*')
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path
  const meant = nearestRoute(path, paths)
  const cure = meant === undefined ? '' : ` (did you mean ${meant}?)`
  const spoken = meant === undefined && isOpenAiPath(path) ? chatCompletions : ''
  return respond(
    new MillraceError('not-found', `There is nothing at ${shown}${cure}. ${spoken}Routes: ${listNames(paths)}.`),
  )
}

const chatCompletions =
  'Under /v1 this server speaks OpenAI’s Responses and Chat Completions, and Anthropic’s Messages: set your client to one of them (POST /v1/responses, POST /v1/chat/completions, POST /v1/messages). '

/** Compares segment by segment and keeps ids as given. The first segment may be missing or superfluous. */
function nearestRoute(path: string, routes: readonly string[]): string | undefined {
  const given = segmentsOf(path)
  let best: string | undefined
  let least = 3
  for (const route of routes) {
    const wanted = segmentsOf(route)
    const more = wanted.length - given.length
    if (Math.abs(more) > 1) continue
    const head = wanted.slice(0, Math.max(0, more))
    const rest = given.slice(Math.max(0, -more))
    const found = compare(rest, wanted.slice(head.length))
    if (found === undefined || head.some(isParameter)) continue
    const mistakes = found.mistakes + Math.abs(more)
    if (mistakes >= least) continue
    least = mistakes
    best = `/${[...head, ...found.path].join('/')}`
  }
  return best !== undefined && best.length <= 200 ? best : undefined
}

function compare(
  given: readonly string[],
  wanted: readonly string[],
): { mistakes: number; path: string[] } | undefined {
  let mistakes = 0
  let literals = 0
  for (const [i, segment] of wanted.entries()) {
    if (isParameter(segment)) continue
    if (given[i] !== segment) {
      if (nearest(given[i]!, [segment]) === undefined) return undefined
      mistakes++
    }
    literals++
  }
  // Only ids: such a route is similar to every path.
  return literals === 0
    ? undefined
    : { mistakes, path: wanted.map((segment, i) => (isParameter(segment) ? given[i]! : segment)) }
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter(Boolean)
}

function isParameter(segment: string): boolean {
  return segment.startsWith(':')
}
