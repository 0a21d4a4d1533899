/** `GET /`: a description of this server and its use, as a page and as JSON. The page loads nothing else: no scripts, no files, no other origins. */
import { preferredType } from '../http/query.ts'
import type { Agent } from '../../runtime/runtime.ts'
import { version } from '../version.ts'

export interface HomeFacts {
  /** The agents, or the reason why the client may not see them. */
  agents: readonly Agent[] | { refusal: string }
  /** Load errors of agents. */
  faults: readonly string[]
  /** Whether requests need a key. */
  key: boolean
  /** Paths to link to. */
  links: readonly string[]
}

export function homeResponse(request: Request, { agents, faults, key, links }: HomeFacts): Response {
  const { origin } = new URL(request.url)
  const openai = { baseURL: `${origin}/v1` }
  const agUi = { url: `${origin}/ag-ui/<agent>` }
  const refusal = 'refusal' in agents ? agents.refusal : undefined
  const shown = ('refusal' in agents ? [] : agents).map(({ id, pipeline: { metadata } }) => ({
    id,
    name: metadata.name,
    description: metadata.description,
    curl: curlLine(origin, id, key),
  }))
  const headers = { 'cache-control': 'no-store', vary: 'accept', 'x-content-type-options': 'nosniff' }
  if (preferredType(request, ['text/html', 'application/json']) === 'application/json') {
    const content = refusal === undefined ? { agents: shown, faults, openai, agUi } : { message: refusal }
    return Response.json({ name: 'Millrace', version, ...content, links }, { headers })
  }
  const nonce = crypto.randomUUID()
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
  return new Response(page({ nonce, agents: shown, faults, refusal, links, openai, agUi }), {
    headers: {
      ...headers,
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
      'referrer-policy': 'no-referrer',
    },
  })
}

function curlLine(origin: string, agentId: string, key: boolean): string {
  const body = JSON.stringify({ agentId, messages: [{ role: 'user', content: 'Hello!' }] })
  const auth = key ? ` -H "Authorization: Bearer $MILLRACE_API_KEY"` : ''
  return `curl -N ${quote(`${origin}/api/beddel/chat`)}${auth} -H 'Content-Type: application/json' -d ${quote(body)}`
}

/** Quotes text for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

interface PageFacts {
  nonce: string
  agents: readonly { id: string; name?: string; description?: string; curl: string }[]
  faults: readonly string[]
  refusal: string | undefined
  links: readonly string[]
  openai: { baseURL: string }
  agUi: { url: string }
}

const style = `:root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}
body{margin:0 auto;max-width:46rem;padding:1.5rem 1rem}
h3{margin:1.5rem 0 0}p{margin:.25rem 0}small{font-weight:400;opacity:.7}
pre{background:#8881;border:1px solid #8884;border-radius:.4rem;overflow-x:auto;padding:.75rem}
a:focus-visible,pre:focus-visible{outline:2px solid;outline-offset:2px}
nav a{display:inline-block;margin-right:1rem;padding:.5rem 0}`

function page({ nonce, agents, faults, refusal, links, openai, agUi }: PageFacts): string {
  const cards = agents.map(
    ({ id, name, description, curl }) =>
      `<h3>${escape(id)}${name === undefined ? '' : ` <small>${escape(name)}</small>`}</h3>
${description === undefined ? '' : `<p>${escape(description)}</p>`}
<pre tabindex="0" role="region" aria-label="Example request to ${escape(id)}"><code>${escape(curl)}</code></pre>`,
  )
  const none = '<p>None yet: add a YAML file to the agents folder.</p>'
  const wrong = faults.length === 0 ? '' : `<h2>Not loaded</h2><pre tabindex="0">${escape(faults.join('\n'))}</pre>`
  const models = `<p>OpenAI clients use each agent as a model, with the base URL <code>${escape(openai.baseURL)}</code></p>`
  const clients = `<p>AG-UI clients, such as CopilotKit, use the URL <code>${escape(agUi.url)}</code></p>`
  const told =
    refusal === undefined ? `${cards.join('\n') || none}\n${models}\n${clients}\n${wrong}` : `<p>${escape(refusal)}</p>`
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Millrace</title><style nonce="${nonce}">${style}</style></head><body><main>
<h1>Millrace <small>${version}</small></h1><p>One YAML file is an agent. Every client streams it. Every run is a log.</p>
<h2>Agents</h2>
${told}
<nav aria-label="Routes">${links.map((link) => `<a href="${escape(link)}">${escape(link)}</a>`).join('')}</nav>
</main></body></html>
`
}

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/gu, (character) => `&#${character.codePointAt(0)};`)
}
