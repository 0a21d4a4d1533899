/** Where a path is: what the header and the window's title call it. */
import { plainThread } from '../../src/part/principal.ts'
import { shortId } from '../kit/format.ts'

export interface Breadcrumb {
  label: string
  /** Absent: here. */
  href?: string
}

const rooms = new Map<string, Breadcrumb[]>([
  ['chat', [{ label: 'Chat', href: '/' }]],
  ['beside', [{ label: 'Chat', href: '/' }, { label: 'Side by side' }]],
  ['runs', [{ label: 'Runs', href: '/runs' }]],
  ['compare', [{ label: 'Runs', href: '/runs' }, { label: 'Compare' }]],
  ['agents', [{ label: 'Agents', href: '/agents' }]],
  ['threads', [{ label: 'Threads', href: '/threads' }]],
  ['tests', [{ label: 'Tests', href: '/tests' }]],
  ['overview', [{ label: 'Overview', href: '/overview' }]],
])

/** From the outside in; the last one is here. */
export function placesOf(path: string): Breadcrumb[] {
  const [, room = '', rest] = path.split('/')
  const places = rooms.get(room === '' ? 'chat' : room) ?? [{ label: 'No page' }]
  if (rest === undefined || rest === '') return [...places.slice(0, -1), { label: places.at(-1)!.label }]
  const name = decoded(rest)
  if (room === 'threads') return [...places, { label: shortId(plainThread(name)) }]
  return [...places, { label: room === 'runs' ? shortId(name) : name }]
}

/** `run_1 · Runs · Millrace`; `title` is what the room calls itself. */
export function windowTitle(path: string, title?: string): string {
  const labels = placesOf(path).map(({ label }) => label)
  if (title !== undefined) labels[labels.length - 1] = title
  return [...labels.toReversed(), 'Millrace'].join(' · ')
}

/** The name behind a room's path, as it was before it was encoded: `/threads/a%2Fb` → `a/b`. A router decodes only parts of it. */
export function nameInPath(path: string = location.pathname): string {
  return decoded(path.split('/')[2] ?? '')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
