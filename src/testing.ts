/** `millrace/testing`: a model that plays a script, for tests of your own agents. Browser-safe. */
export {
  delay,
  drop,
  errorPart,
  finish,
  latch,
  reasoning,
  refuse,
  text,
  throws,
  toolCall,
  type Delay,
  type Fault,
  type FinishReason,
  type Latch,
  type ScriptStep,
} from './models/scripted.ts'
export {
  createScriptedModel,
  type PlayedCall,
  type Script,
  type ScriptedModel,
  type ScriptedOptions,
} from './models/scripted.ts'
