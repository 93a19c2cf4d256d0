/**
 * Tools that host plugins offer to a model in their own agent loop.
 */
import type { EventBus } from './bus';
import type { Runtime } from './runtime';

/** Definition of a tool, in the shape that models get. */
export interface ToolDefinition {
	readonly name: string;
	readonly description: string;
	readonly parameters: {
		readonly type: 'object';
		readonly properties: Readonly< Record< string, { readonly type: 'string' | 'array' | 'number' | 'boolean'; readonly description?: string; readonly items?: { readonly type: 'string' } } > >;
		readonly required?: readonly string[];
	};
}

export type ToolHandler = ( input: Record< string, unknown > ) => unknown;

/** A tool call that is refused before it runs. */
export class ToolError extends Error {
	readonly code = 'wp_codebox_input_invalid';
}

export class ToolRegistry {
	private readonly tools = new Map< string, { definition: ToolDefinition; handler: ToolHandler } >();

	/** Adds a tool; returns the function that removes it. */
	register( definition: ToolDefinition, handler: ToolHandler ): () => void {
		if ( this.tools.has( definition.name ) ) {
			throw new ToolError( `there is already a tool ${ JSON.stringify( definition.name ) }` );
		}
		this.tools.set( definition.name, { definition, handler } );
		return () => {
			this.tools.delete( definition.name );
		};
	}

	/** Returns the definitions of all tools. */
	list(): ToolDefinition[] {
		return [ ...this.tools.values() ].map( ( { definition } ) => definition );
	}

	/** Runs a tool. Input that its definition does not allow is refused. */
	async call( name: string, input: unknown ): Promise< unknown > {
		const tool = this.tools.get( name );
		if ( ! tool ) {
			throw new ToolError( `there is no tool ${ JSON.stringify( name ) }; the tools are ${ [ ...this.tools.keys() ].join( ', ' ) }` );
		}
		if ( null === input || 'object' !== typeof input || Array.isArray( input ) ) {
			throw new ToolError( `the input of the tool ${ name } must be an object` );
		}
		const { properties, required = [] } = tool.definition.parameters;
		const given = input as Record< string, unknown >;
		for ( const member of required ) {
			if ( undefined === given[ member ] ) {
				throw new ToolError( `the tool ${ name } needs the member ${ member }` );
			}
		}
		for ( const [ member, value ] of Object.entries( given ) ) {
			const shape = properties[ member ];
			if ( ! shape ) {
				throw new ToolError( `the tool ${ name } has no member ${ JSON.stringify( member ) }` );
			}
			const fits = 'array' === shape.type ? Array.isArray( value ) && value.every( ( item ) => ! shape.items || shape.items.type === typeof item ) : shape.type === typeof value;
			if ( ! fits ) {
				throw new ToolError( `the member ${ member } of the tool ${ name } must be ${ 'array' === shape.type ? 'a list of strings' : `a ${ shape.type }` }` );
			}
		}
		return tool.handler( given );
	}
}

/** Maximum number of characters of each stream in the answer to a model. The terminal shows all of them. */
const MAX_OUTPUT = 64 * 1024;

/** The answer of `run_terminal_command`. */
export interface CommandAnswer {
	readonly executionId: string;
	readonly exitCode: number;
	readonly stdout: string;
	readonly stderr: string;
	/** Whether `stdout` or `stderr` was cut. */
	readonly truncated: boolean;
	readonly error?: { readonly code: string; readonly message: string };
}

/** Definition of the tool that runs a command in the terminal. */
export const RUN_TERMINAL_COMMAND: ToolDefinition = {
	name: 'run_terminal_command',
	description: 'Execute a shell command in the sandbox',
	parameters: {
		type: 'object',
		properties: {
			command: { type: 'string', description: 'Name of the command, such as ls, cat, php or wp' },
			args: { type: 'array', items: { type: 'string' }, description: 'Arguments of the command' },
		},
		required: [ 'command' ],
	},
};

/** Returns the handler of `run_terminal_command`: it emits `AGENT_EXEC_CMD` and waits for `RUNTIME_EXIT`. */
export function terminalCommand( bus: EventBus, runtime: Runtime ): ToolHandler {
	return ( { command, args } ) =>
		new Promise< CommandAnswer >( ( done ) => {
			const executionId = runtime.executionId();
			const streams = { stdout: '', stderr: '' };
			let truncated = false;
			const endOutput = bus.subscribe( 'RUNTIME_OUTPUT', ( { event: { payload } } ) => {
				if ( executionId === payload.executionId ) {
					const all = streams[ payload.stream ] + payload.data;
					truncated ||= all.length > MAX_OUTPUT;
					streams[ payload.stream ] = all.slice( 0, MAX_OUTPUT );
				}
			} );
			const endExit = bus.subscribe( 'RUNTIME_EXIT', ( { event: { payload } } ) => {
				if ( executionId === payload.executionId ) {
					endOutput();
					endExit();
					done( { executionId, exitCode: payload.exitCode, ...streams, truncated, ...( payload.error ? { error: payload.error } : {} ) } );
				}
			} );
			bus.emit( { type: 'AGENT_EXEC_CMD', payload: { command: command as string, args: ( args as string[] | undefined ) ?? [], executionId } } );
		} );
}
