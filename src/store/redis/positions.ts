/** Positions in the changes of all runs, which processes hand on to each other. */
import type { Positions } from '../../part/log.ts'
import type { Connection } from './connection.ts'
import { evenFull } from './even-full.ts'

export function createPositions({ ask, keys }: Connection): Positions {
  return {
    async get(name) {
      const key = keys.position(name)
      const found = await ask('read a position', key, ['GET', key])
      if (typeof found !== 'string') return undefined
      const [position, by = ''] = found.split(' ')
      return { position: Number(position), by }
    },
    async keep(name, position, by) {
      const key = keys.position(name)
      await ask('keep a position', key, evenFull('SET', key, `${position} ${by}`))
    },
  }
}
