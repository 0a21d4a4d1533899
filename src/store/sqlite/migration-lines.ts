/** Reports a migration as log lines: its start and needs, its progress every few seconds, its warnings, and its end. */
import { megabytes, type MigrationNews, type MigrationPlan } from './migrate.ts'

/** ms between two progress lines. */
const every = 5000

export function createTeller(
  path: string,
  write: (line: string) => void,
  { pause = every, now = () => performance.now() } = {},
): (news: MigrationNews) => void {
  let told = now()
  return (news) => {
    if (news.type === 'progress') {
      if (now() - told < pause) return
      told = now()
      write(`${path}: ${news.percent} % is migrated`)
    } else if (news.type === 'begins') write(`${planLine(path, news)}; migrating …`)
    else if (news.type === 'warning') write(`warning: ${news.message}`)
    else {
      const kept = news.backup === undefined ? '' : `; as it was it is in ${news.backup}`
      write(`${path} is migrated to schema ${news.to}, in ${(news.ms / 1000).toFixed(1)} s${kept}`)
    }
  }
}

export function planLine(path: string, { from, to, size, needs, free }: MigrationPlan): string {
  const space = free === undefined ? '' : `, ${megabytes(free)} are free`
  const what = from === to ? `schema ${to}, tables of another layout` : `schema ${from}, this version needs ${to}`
  return `${path} was written by an older Millrace (${what}; ${megabytes(size)}; a migration needs about ${megabytes(needs)} more${space})`
}
