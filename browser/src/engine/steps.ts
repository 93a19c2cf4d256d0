/** Steps of a blueprint. Every step is carried out, or refused with its number and name. */
import { EngineError, type BlueprintStep } from './api.js';
import { copyTree, normalize, reason } from './files.js';
import activatePlugin from './php/activate-plugin.php';
import activateTheme from './php/activate-theme.php';
import login from './php/login.php';
import siteOptions from './php/site-options.php';
import { documentRoot } from './php-boot.js';
import type { ReadyStep } from './resources.js';
import type { Site } from './site.js';
import { readZip, writeEntries } from './unzip.js';
import { exec } from './exec.js';

type Run = ( site: Site, fields: BlueprintStep ) => Promise< void > | void;

/** A step failed, and the message says why. */
class StepProblem extends Error {}

const steps: Record< string, Run > = {
	login: async ( site, fields ) => {
		const answer = await php( site, login, { username: text( fields, 'username', 'admin' ) } );
		site.cookies.rememberCookiesFromResponseHeaders( answer.headers );
	},
	activatePlugin: async ( site, fields ) => {
		await php( site, activatePlugin, { plugin: below( text( fields, 'pluginPath' ), `${ documentRoot }/wp-content/plugins/` ) } );
	},
	activateTheme: async ( site, fields ) => {
		await php( site, activateTheme, { theme: text( fields, 'themeFolderName' ) } );
	},
	installPlugin: ( site, fields ) => install( site, fields, 'plugin' ),
	installTheme: ( site, fields ) => install( site, fields, 'theme' ),
	writeFile: ( site, fields ) => write( site, text( fields, 'path' ), contents( site, fields.data ) ),
	writeFiles: ( site, fields ) => writeTree( site, text( fields, 'writeToPath' ), fields.filesTree ),
	mkdir: ( site, fields ) => site.php.mkdir( path( fields, 'path' ) ),
	rm: ( site, fields ) => site.php.unlink( path( fields, 'path' ) ),
	rmdir: ( site, fields ) => site.php.rmdir( path( fields, 'path' ), { recursive: true } ),
	mv: ( site, fields ) => site.php.mv( path( fields, 'fromPath' ), path( fields, 'toPath' ) ),
	cp: ( site, fields ) => copyTree( site.php, path( fields, 'fromPath' ), path( fields, 'toPath' ) ),
	unzip: ( site, fields ) => writeEntries( site.php, path( fields, 'extractToPath' ), readZip( contents( site, fields.zipFile ?? { resource: 'vfs', path: fields.zipPath } ), 'The archive' ) ),
	runPHP: async ( site, fields ) => {
		const answer = await site.run( { code: 'object' === typeof fields.code ? new TextDecoder().decode( contents( site, ( fields.code as { content?: unknown } ).content ) ) : text( fields, 'code' ) } );
		succeed( answer );
	},
	defineWpConfigConsts: ( site, fields ) => {
		for ( const [ name, value ] of Object.entries( object( fields, 'consts' ) ) ) {
			if ( ! /^[A-Za-z_]\w*$/.test( name ) || ! [ 'string', 'number', 'boolean' ].includes( typeof value ) ) {
				throw new StepProblem( `${ JSON.stringify( name ) } is not a constant with a text, a number, true or false` );
			}
			site.php.defineConstant( name, value as string );
		}
	},
	setSiteOptions: async ( site, fields ) => {
		await php( site, siteOptions, { options: object( fields, 'options' ) } );
	},
	'wp-cli': async ( site, fields ) => {
		const words = Array.isArray( fields.command ) ? fields.command.map( String ) : splitWords( text( fields, 'command' ) );
		const output: string[] = [];
		const status = await exec( site, words[ 0 ] ?? 'wp', words.slice( 1 ), documentRoot, ( _stream, data ) => output.push( data ) );
		if ( 0 !== status ) {
			throw new StepProblem( output.join( '' ).trim().slice( 0, 500 ) );
		}
	},
};

/** Carries out one step. */
export async function runStep( site: Site, { number, step }: ReadyStep ): Promise< void > {
	const run = Object.hasOwn( steps, step.step ) ? steps[ step.step ] : undefined;
	if ( undefined === run ) {
		throw new EngineError( 'wp_codebox_browser_step_unsupported', `Step ${ number } (${ step.step }) is not supported here.`, `Supported: ${ Object.keys( steps ).join( ', ' ) }.` );
	}
	try {
		await run( site, step );
	} catch ( thrown ) {
		if ( thrown instanceof EngineError && 'wp_codebox_browser_request_failed' !== thrown.code ) {
			throw thrown;
		}
		throw new EngineError( 'wp_codebox_browser_step_failed', `Step ${ number } (${ step.step }) failed: ${ thrown instanceof StepProblem ? thrown.message : reason( thrown ) }.` );
	}
}

async function php( site: Site, code: string, input: Record< string, unknown > ) {
	const answer = await site.run( { code, env: { CODEBOX_INPUT: JSON.stringify( input ) } } );
	succeed( answer );
	return answer;
}

function succeed( answer: { exitCode: number; text: string; errors: string } ): void {
	if ( 0 !== answer.exitCode ) {
		const words = `${ answer.errors }\n${ answer.text.replace( /<style[\s\S]*?<\/style>|<script[\s\S]*?<\/script>|<[^>]*>/g, ' ' ) }`.replace( /\s+/g, ' ' ).trim();
		throw new StepProblem( words.slice( 0, 600 ) || `PHP ended with status ${ answer.exitCode }` );
	}
}

function text( fields: BlueprintStep, name: string, usual?: string ): string {
	const value = fields[ name ] ?? usual;
	if ( 'string' !== typeof value ) {
		throw new StepProblem( `the field ${ name } must be a text` );
	}
	return value;
}

function object( fields: BlueprintStep, name: string ): Record< string, unknown > {
	const value = fields[ name ];
	if ( null === value || 'object' !== typeof value || Array.isArray( value ) ) {
		throw new StepProblem( `the field ${ name } must be an object` );
	}
	return value as Record< string, unknown >;
}

/** Relative paths of blueprints are below the document root. */
function path( fields: BlueprintStep, name: string ): string {
	return absolute( text( fields, name ) );
}

function absolute( value: string ): string {
	return normalize( value.startsWith( '/' ) ? value : `${ documentRoot }/${ value }` );
}

function below( value: string, directory: string ): string {
	return value.startsWith( directory ) ? value.slice( directory.length ) : value;
}

function contents( site: Site, value: unknown ): Uint8Array {
	if ( 'string' === typeof value ) {
		return new TextEncoder().encode( value );
	}
	if ( value instanceof Uint8Array ) {
		return value;
	}
	const resource = value as { resource?: string; path?: string; contents?: unknown } | null | undefined;
	if ( 'vfs' === resource?.resource && 'string' === typeof resource.path ) {
		return site.php.readFileAsBuffer( absolute( resource.path ) ).slice();
	}
	if ( 'literal' === resource?.resource ) {
		return contents( site, resource.contents );
	}
	throw new StepProblem( 'a file must be a text or a resource of the kind literal, url or vfs' );
}

function write( site: Site, file: string, data: Uint8Array ): void {
	const target = absolute( file );
	site.php.mkdir( target.slice( 0, target.lastIndexOf( '/' ) ) || '/' );
	site.php.writeFile( target, data );
}

function writeTree( site: Site, directory: string, tree: unknown ): void {
	const files = ( tree as { resource?: string; files?: unknown } | undefined )?.files;
	if ( 'object' !== typeof files || null === files ) {
		throw new StepProblem( 'the field filesTree must be a literal directory' );
	}
	for ( const [ name, value ] of Object.entries( files ) ) {
		const inner = value as { files?: unknown } | null;
		if ( 'object' === typeof inner && null !== inner && ! ( inner instanceof Uint8Array ) && 'files' in inner ) {
			writeTree( site, `${ directory }/${ name }`, inner );
		} else {
			write( site, `${ directory }/${ name }`, contents( site, value ) );
		}
	}
}

async function install( site: Site, fields: BlueprintStep, kind: 'plugin' | 'theme' ): Promise< void > {
	const data = fields[ `${ kind }Data` ] ?? fields[ `${ kind }ZipFile` ];
	const entries = readZip( contents( site, data ), `The archive of the ${ kind }` );
	const tops = new Set( [ ...entries.keys() ].map( ( name ) => name.split( '/' )[ 0 ] ?? '' ) );
	const [ top ] = tops;
	const options = ( fields.options ?? {} ) as { activate?: boolean; targetFolderName?: string };
	if ( 1 !== tops.size || undefined === top || entries.has( top ) ) {
		throw new StepProblem( 'the archive must hold one directory' );
	}
	const folder = options.targetFolderName ?? top;
	if ( ! /^[\w.-]+$/.test( folder ) || folder.startsWith( '.' ) ) {
		throw new StepProblem( `${ JSON.stringify( folder ) } is not the name of a directory` );
	}
	const directory = `${ documentRoot }/wp-content/${ kind }s/${ folder }`;
	writeEntries( site.php, directory, new Map( [ ...entries ].map( ( [ name, bytes ] ) => [ name.slice( top.length + 1 ), bytes ] ) ) );
	if ( false !== options.activate ) {
		await ( 'plugin' === kind ? php( site, activatePlugin, { plugin: folder } ) : php( site, activateTheme, { theme: folder } ) );
	}
}

/** Splits a command line at spaces outside of quotes. */
export function splitWords( line: string ): string[] {
	return [ ...line.matchAll( /(?:[^\s"']|"(?:\\.|[^"\\])*"|'[^']*')+/g ) ].map( ( [ word ] ) => word.replace( /"((?:\\.|[^"\\])*)"|'([^']*)'/g, ( _whole, double, single ) => ( undefined === double ? single : double.replace( /\\(.)/g, '$1' ) ) ) );
}
