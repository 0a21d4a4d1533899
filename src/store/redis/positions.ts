/** Positions in the changes of all runs, which processes hand on to each other. */
import type { Positions } from '../../part/log.ts'
import type { Connection } from './connection.ts'
import { evenFull } from './even-full.ts'
import { damagedIs } from './redis-failed.ts'

export function createPositions({ ask, keys }: Connection): Positions {
  return {
    async get(name) {
      const key = keys.position(name)
      const found = await ask('read a position', key, ['GET', key]).catch(damagedIs(undefined))
      // Whoever finds no position, or none that can be one, begins anew.
      const [, position, by = ''] = /^(\d{1,16})(?: (.*))?$/u.exec(String(found)) ?? []
      return position === undefined ? undefined : { position: Number(position), by }
    },
    async keep(name, position, by) {
      const key = keys.position(name)
      await ask('keep a position', key, evenFull('SET', key, `${position} ${by}`))
    },
  }
}
