/** Commands of the terminal. There are no processes in a browser: PHP runs scripts, and this code does the rest. */
import { EngineError } from './api.js';
import { UsageProblem, tools, type Output, type ToolContext } from './exec-tools.js';
import { normalize, reason } from './files.js';
import cli from './php/cli.php';
import wpSubset from './php/wp.php';
import { documentRoot } from './php-boot.js';
import type { Site } from './site.js';
import { splitWords } from './steps.js';

const supported = () => [ ...Object.keys( tools ), 'php', 'wp' ].sort().join( ', ' );

/** Why well-known commands do not exist here. */
const reasons: Record< string, string > = {
	npm: 'it needs Node.js and the network', npx: 'it needs Node.js and the network', node: 'there is no Node.js', composer: 'it needs the network', curl: 'there is no network', wget: 'there is no network',
	git: 'there is no Git', ssh: 'there is no network', bash: 'there is no shell', sh: 'there is no shell', sudo: 'there are no users', mysql: 'the database is SQLite, use `wp eval` or PHP', python: 'there is no Python', python3: 'there is no Python',
};

/** Runs one command and returns its exit status; `output` is called with each piece as it arrives. */
export async function exec( site: Site, command: string, args: string[], cwd: string | undefined, output: Output ): Promise< number > {
	const words = 0 === args.length && /\s/.test( command.trim() ) ? splitWords( command.trim() ) : [ command.trim(), ...args.map( String ) ];
	const [ name = '', ...rest ] = words;
	if ( 0 === args.length && /(^|\s)(\||\|\||&&|;|>|>>|<|&)(\s|$)|\$\(|`/.test( command ) && ! /^php\s+-r/.test( command ) ) {
		throw unsupported( command, 'pipes, redirections and lists of commands need a shell, and there is none' );
	}
	const directory = normalize( cwd ?? site.baseline.directory ?? documentRoot );
	if ( ! site.php.isDir( directory ) ) {
		output( 'stderr', `${ directory }: no such directory\n` );
		return 1;
	}
	const context: ToolContext = { php: site.php, cwd: directory, output, path: ( one ) => normalize( one.startsWith( '/' ) ? one : `${ directory }/${ one }` ) };
	const tool = Object.hasOwn( tools, name ) ? tools[ name ] : undefined;
	try {
		if ( undefined !== tool ) {
			return tool( context, rest );
		}
		if ( 'php' === name ) {
			return await php( site, context, rest );
		}
		if ( 'wp' === name ) {
			return await wp( site, context, rest );
		}
	} catch ( thrown ) {
		if ( thrown instanceof UsageProblem ) {
			throw unsupported( [ name, ...rest ].join( ' ' ), thrown.message );
		}
		if ( thrown instanceof EngineError ) {
			throw thrown;
		}
		output( 'stderr', `${ name }: ${ reason( thrown ) }\n` );
		return 1;
	}
	throw unsupported( name, reasons[ name ] ?? 'the sandbox in a browser has no other programs than PHP' );
}

function unsupported( command: string, why: string ): EngineError {
	return new EngineError( 'wp_codebox_browser_command_unsupported', `${ command || 'An empty command' }: ${ why }.`, `Supported: ${ supported() }.` );
}

async function php( site: Site, context: ToolContext, args: string[] ): Promise< number > {
	const [ first, ...rest ] = args;
	if ( undefined === first ) {
		throw new UsageProblem( 'php without arguments would read a script from the keyboard' );
	}
	if ( '-v' === first || '--version' === first ) {
		return script( site, context, { mode: 'version' } );
	}
	if ( '-m' === first ) {
		return script( site, context, { mode: 'modules' } );
	}
	if ( '-l' === first ) {
		return script( site, context, { mode: 'lint', file: context.path( rest[ 0 ] ?? '' ), shown: rest[ 0 ] ?? '' } );
	}
	if ( '-r' === first ) {
		return script( site, context, { mode: 'code', code: rest[ 0 ] ?? '', argv: [ 'Standard input code', ...withoutDashes( rest.slice( 1 ) ) ] } );
	}
	const file = '-f' === first ? rest[ 0 ] ?? '' : first;
	if ( file.startsWith( '-' ) ) {
		throw new UsageProblem( `the option ${ file } of php is not supported (-r, -f, -l, -m, -v are)` );
	}
	const more = '-f' === first ? withoutDashes( rest.slice( 1 ) ) : rest;
	if ( ! site.php.isFile( context.path( file ) ) ) {
		context.output( 'stderr', `Could not open input file: ${ file }\n` );
		return 1;
	}
	return script( site, context, { mode: 'file', file: context.path( file ), argv: [ file, ...more ] } );
}

function withoutDashes( args: string[] ): string[] {
	return '--' === args[ 0 ] ? args.slice( 1 ) : args;
}

async function wp( site: Site, context: ToolContext, args: string[] ): Promise< number > {
	if ( null !== site.wpCli ) {
		const phar = '/tmp/wp-cli.phar';
		if ( ! site.php.isFile( phar ) ) {
			site.php.writeFile( phar, site.wpCli );
		}
		return script( site, context, { mode: 'phar', file: phar, argv: [ phar, `--path=${ documentRoot }`, '--no-color', ...args ] } );
	}
	const status = await script( site, context, { mode: 'wp', argv: args, code: wpSubset } );
	// The subset ends with this status when it does not know a command.
	if ( 90 === status ) {
		throw new UsageProblem( 'this session has no WP-CLI; a subset of its commands works: core version, option get|update|delete, plugin list|activate|deactivate, theme list|activate, user list, post list, eval, cache flush, rewrite flush' );
	}
	return status;
}

/** Runs `php/cli.php`, which sets up what a PHP command line has. */
async function script( site: Site, context: ToolContext, input: Record< string, unknown > ): Promise< number > {
	return site.stream( { code: cli, env: { CODEBOX_INPUT: JSON.stringify( { cwd: context.cwd, ...input } ) } }, async ( response ) => {
		const read = async ( stream: ReadableStream< Uint8Array >, name: 'stdout' | 'stderr' ) => {
			const decoder = new TextDecoder();
			const reader = stream.getReader();
			for ( ;; ) {
				const { done, value } = await reader.read();
				const text = decoder.decode( value, { stream: ! done } );
				if ( '' !== text ) {
					context.output( name, text );
				}
				if ( done ) {
					return;
				}
			}
		};
		await Promise.all( [ read( response.stdout, 'stdout' ), read( response.stderr, 'stderr' ) ] );
		return response.exitCode;
	} );
}
