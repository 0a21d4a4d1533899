/** A pack exports its tools, step types, callbacks and agents by name. In a package, this is the main module. */
import { defineTool, type PrimitiveHandler } from 'millrace'
import { z } from 'zod'

export const tools = {
  weather: defineTool({
    description: 'The weather of a city',
    parameters: z.object({ city: z.string() }),
    execute: ({ city }: { city: string }) => ({ city, celsius: city.length }),
    idempotent: true,
  }),
}

const toFahrenheit: PrimitiveHandler = ({ celsius }: { celsius: number }) => ({ fahrenheit: celsius * 1.8 + 32 })
export const steps = { 'to-fahrenheit': toFahrenheit }

export const callbacks = {
  noteForecast: ({ text }: { text: string }) => console.error(`forecast: ${text}`),
}

export const agents = {
  forecast: `metadata: { name: "Forecast", description: "Answers with the weather of a city" }
workflow:
  - id: answer
    type: llm
    config:
      model: "demo:assistant"
      stream: true
      tools: [weather]
      onFinish: noteForecast
`,
}
