// A WebGL2 context that computes: float32 textures in, one float32 texture out. No drawing to the screen.
import { fragment, ROW, type Variant, VERTEX } from "./shader.ts";

export interface Program {
  handle: WebGLProgram;
  uniform(name: string): WebGLUniformLocation | null;
}

/** Owns the context, its programs and its target; made once per simulator. */
export class Compute {
  readonly gl: WebGL2RenderingContext;
  private readonly programs = new Map<Variant, Program>();
  private readonly framebuffer: WebGLFramebuffer;

  private constructor(gl: WebGL2RenderingContext) {
    this.gl = gl;
    this.framebuffer = gl.createFramebuffer()!;
  }

  /** A context that can render to float32, or null where the browser has none. */
  static open(): Compute | null {
    const gl = canvas()?.getContext("webgl2", { antialias: false, depth: false });
    if (!(gl instanceof WebGL2RenderingContext)) return null;
    return gl.getExtension("EXT_color_buffer_float") === null ? null : new Compute(gl);
  }

  get lost(): boolean {
    return this.gl.isContextLost();
  }

  /** A texture of n texels with four float32 numbers each. */
  texture(n: number): WebGLTexture {
    const { gl } = this;
    const texture = gl.createTexture()!;
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA32F, ROW, rowsOf(n));
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    return texture;
  }

  /** Fill a texture, and bind it to a unit. */
  load(unit: number, texture: WebGLTexture, values: Float32Array): void {
    const { gl } = this;
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, texture);
    const rows = values.length / (4 * ROW);
    gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, ROW, rows, gl.RGBA, gl.FLOAT, values);
  }

  /** Compiled on first use; throws where the driver refuses it. */
  program(variant: Variant): Program {
    const found = this.programs.get(variant) ?? this.compile(variant);
    this.programs.set(variant, found);
    return found;
  }

  /** Run the program in use once per texel of the target and read it back. */
  run(target: WebGLTexture, out: Float32Array): void {
    const { gl } = this;
    const rows = out.length / (4 * ROW);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.framebuffer);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, target, 0);
    gl.viewport(0, 0, ROW, rows);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.readPixels(0, 0, ROW, rows, gl.RGBA, gl.FLOAT, out);
  }

  /** Give the context back: browsers keep only a few alive. */
  close(): void {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }

  private compile(variant: Variant): Program {
    const { gl } = this;
    const handle = gl.createProgram()!;
    for (const [type, source] of [
      [gl.VERTEX_SHADER, VERTEX],
      [gl.FRAGMENT_SHADER, fragment(variant)],
    ] as const) {
      const shader = gl.createShader(type)!;
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(handle, shader);
    }
    gl.linkProgram(handle);
    if (!gl.getProgramParameter(handle, gl.LINK_STATUS))
      throw new Error(`the attention shader does not link: ${gl.getProgramInfoLog(handle)}`);
    const places = new Map<string, WebGLUniformLocation | null>();
    const uniform = (name: string) => {
      if (!places.has(name)) places.set(name, gl.getUniformLocation(handle, name));
      return places.get(name)!;
    };
    return { handle, uniform };
  }
}

/** Rows of a texture that holds n texels. */
export function rowsOf(n: number): number {
  return Math.ceil(n / ROW);
}

function canvas(): OffscreenCanvas | HTMLCanvasElement | null {
  if (typeof OffscreenCanvas !== "undefined") return new OffscreenCanvas(1, 1);
  return typeof document === "undefined" ? null : document.createElement("canvas");
}
