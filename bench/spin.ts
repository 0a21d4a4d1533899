/** A process on the server's core that measures its current speed. */
import { answerCalls } from './calls.ts'
import { spin } from './steady.ts'

for (let i = 0; i < 20; i++) spin()
answerCalls({ spin })
