/** A process that compacts or archives the run `r` and is killed in the middle. */
import { openArchive, type Archive } from '../../archive/archive.ts'
import { redisStore } from '../redis-store.ts'

const { url, folder, when } = JSON.parse(process.argv[2]!) as { url: string; folder: string; when: string }
const die = () => process.kill(process.pid, 'SIGKILL')

const inner = openArchive(folder)
const archive: Archive = {
  ...inner,
  async put(row, entries) {
    async function* cut() {
      for await (const batch of entries) {
        yield batch
        if (when === 'put') die()
      }
    }
    await inner.put(row, cut())
    die()
  },
}
const { upkeep } = await redisStore(url, { archive })
if (when === 'compact') {
  let slices = 0
  await upkeep!.compact('r', { rest: async () => void (++slices === 3 && die()) })
} else await upkeep!.archive!('r')
