import { messageOf } from '../../src/part/error.ts'
import type { RunRow } from '../../src/part/log.ts'
import type { ThreadRow } from '../../src/part/thread.ts'
import { api } from '../data/client.ts'
import { useSignedIn, useThreadName } from '../data/server.ts'
import { signOut } from '../data/sign-in.ts'
import { notice } from '../kit/notice.ts'
import { useAgents } from '../data/hooks.ts'
import { useMedia } from '../data/media.ts'
import { useResource } from '../data/resource.ts'
import { ago } from '../kit/format.ts'
import { statusWord } from '../kit/status-words.ts'
import { copyLink } from './copy-link.ts'
import { keyLabel } from './keys.ts'
import { show } from './overlay.ts'
import { pastedId, type PaletteItem } from './palette-items.ts'
import { personOf } from './person-of.ts'
import { setTheme, themeAfter, useTheme } from './theme.ts'

/** Everything that the palette may find now, and whether all of it is here: what it is asked for decides which are shown. */
export function usePaletteItems(query: string): { items: PaletteItem[]; isWhole: boolean } {
  const known = useAgents()
  const agents = known.value?.agents ?? []
  const newest = useResource('palette-runs', (signal) => api<{ runs: RunRow[] }>('/api/runs?limit=30', { signal }))
  const latest = useResource('palette-threads', (signal) =>
    api<{ threads: ThreadRow[] }>('/api/threads?limit=15', { signal }),
  )
  const [runs, threads] = [newest.value, latest.value]
  const theme = useTheme()
  // Where fingers point there may be no keys.
  const hasKeys = !useMedia('(pointer: coarse)')
  const user = useSignedIn()
  const nameOf = useThreadName()
  const pasted = pastedId(query)
  const items: PaletteItem[] = [
    ...(pasted === undefined
      ? []
      : [
          {
            id: 'pasted',
            group: pasted.kind === 'run' ? ('Runs' as const) : ('Threads' as const),
            label: `Open ${pasted.id}`,
            // What was pasted may be a whole URL: all of it counts as found.
            hint: query,
            href: `/${pasted.kind}s/${pasted.id}`,
          },
        ]),
    ...rooms.map(({ chord, ...room }) => ({ ...room, ...(hasKeys && chord && { hint: keyLabel(chord) }) })),
    { id: 'beside', group: 'Go to', label: 'Side by side', hint: 'compare models and agents', href: '/beside' },
    ...agents.map(({ id, name = id, description = '' }): PaletteItem => {
      const words = [name === id ? '' : id, description].filter((each) => each !== '').join(' · ')
      return {
        id: `agent ${id}`,
        group: 'Agents',
        label: name,
        hint: words,
        ...(hasKeys && { keys: `↵ chat, ⇧↵ file` }),
        href: chatPath(id),
        other: `/agents/${encodeURIComponent(id)}`,
      }
    }),
    { id: 'new', group: 'Do', label: 'New chat', href: '/' },
    { id: 'link', group: 'Do', label: 'Copy the link to this', ...(hasKeys && { hint: keyLabel('y') }), run: copyLink },
    { id: 'theme', group: 'Do', label: `Theme: ${themeAfter(theme)}`, run: () => setTheme(themeAfter(theme)) },
    { id: 'keys', group: 'Do', label: 'Keys', hint: keyLabel('?'), run: () => show('keys') },
    ...(user === undefined || personOf(user).isGuest ? [] : [signOutItem]),
    ...(runs?.runs ?? []).map(({ id, title, agent, status, startedAt }): PaletteItem => ({
      id,
      group: 'Runs',
      label: title ?? id,
      hint: `${agent} · ${statusWord(status)} · ${ago(startedAt)}`,
      href: `/runs/${encodeURIComponent(id)}`,
    })),
    ...(threads?.threads ?? []).map(({ id, title, agents: names, updatedAt }): PaletteItem => ({
      id: `thread ${id}`,
      group: 'Threads',
      label: title ?? nameOf(id).name,
      hint: `${names.join(', ')} · ${ago(updatedAt)}`,
      href: `/threads/${encodeURIComponent(id)}`,
    })),
  ]
  return { items, isWhole: ![known, newest, latest].some(({ isLoading, value }) => isLoading && value === undefined) }
}

const signOutItem: PaletteItem = {
  id: 'sign-out',
  group: 'Do',
  label: 'Sign out',
  run: () => void signOut().catch((error: unknown) => notice(messageOf(error))),
}

const rooms: readonly (PaletteItem & { chord?: string })[] = (
  [
    ['Chat', '/', 'c'],
    ['Runs', '/runs', 'r'],
    ['Threads', '/threads', 't'],
    ['Agents', '/agents', 'a'],
    ['Tests', '/tests', 'e'],
    ['Overview', '/overview', 'o'],
    ['Compare', '/compare', undefined],
  ] as const
).map(([label, href, key]) => ({
  id: href,
  group: 'Go to',
  label,
  href,
  ...(key === undefined ? undefined : { chord: `g ${key}` }),
}))

/** What no list has may be in the texts of all runs. */
export function searchItem(query: string): PaletteItem | undefined {
  const words = query.trim()
  if (words === '') return undefined
  return {
    id: 'search',
    group: 'Search',
    label: `Search all runs for “${words}”`,
    href: `/runs?q=${encodeURIComponent(words)}`,
  }
}

function chatPath(agent: string): string {
  return `/chat/${encodeURIComponent(agent)}`
}
